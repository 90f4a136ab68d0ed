"""Data sets that are downloaded: fetched once, and read only when they are whole."""

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

PATIENCE = 20.0  # seconds that a download may be silent


class DataError(RuntimeError):
    """A data set is not there, or broken; the message says what to do."""


def load(name: str, folder: Path, download: bool) -> list[Any]:
    """Both parts of a data set, training first, by torchvision's own loader.

    A file counts as there when it is whole, so a rank never reads what another still writes.

    Args:
        name: `mnist` or `cifar10`.
        folder: where it is, or comes.
        download: fetch what is not there.

    Raises:
        DataError: it is neither there nor to be downloaded, or what is there is broken.
    """
    from torchvision import datasets  # slow to import, and not needed for the digits

    kind = {"mnist": datasets.MNIST, "cifar10": datasets.CIFAR10}[name]
    title = {"mnist": "MNIST", "cifar10": "CIFAR-10"}[name]
    why = "download=False"
    if download and not all(_files(kind, folder).values()):
        why = _download(kind, folder)
    whole = _files(kind, folder)
    if all(whole.values()):
        return [kind(str(folder), train=part) for part in (True, False)]
    broken = [path for path, good in (whole | _archives(kind, folder)).items() if not good]
    if found := [path for path in broken if path.exists()]:
        raise DataError(
            f"{title} is broken or only partly downloaded ({why}): delete {found[0]} "
            "and ask for it again with download=True"
        )
    raise DataError(
        f"{title} is not in {folder} and was not downloaded ({why}): ask for it again with a "
        'connection to the internet and download=True, or use images("digits"), which needs neither'
    )


def _download(kind: Any, folder: Path) -> str:
    """Let torchvision fetch a data set, one process at a time; return how that ended."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{kind.__name__}.lock"), _impatient():
            if not all(_files(kind, folder).values()):  # nobody did it while we waited
                _fetch(kind, folder)
    except Exception as error:  # whatever goes wrong on the way, the caller needs one sentence
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return reason[-1].rstrip(".:")
    return "downloaded"


def _fetch(kind: Any, folder: Path) -> None:
    """Download what is missing and unpack it."""
    from torchvision.datasets.utils import download_and_extract_archive

    if kind.__name__ == "CIFAR10":  # its own `download` would overlook that batches.meta is gone
        download_and_extract_archive(
            kind.url, str(folder), filename=kind.filename, md5=kind.tgz_md5
        )
    else:
        kind(str(folder), download=True)


def _files(kind: Any, folder: Path) -> dict[Path, bool]:
    """The files of a data set, and whether each is whole."""
    from torchvision.datasets.utils import check_integrity

    if kind.__name__ == "CIFAR10":
        expected = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
        paths = {folder / kind.base_folder / file: md5 for file, md5 in expected}
        return {path: check_integrity(path, md5) for path, md5 in paths.items()}
    names = [Path(archive).stem for archive, _ in kind.resources]
    return {path: _is_whole_idx(path) for path in (folder / "MNIST" / "raw" / n for n in names)}


def _archives(kind: Any, folder: Path) -> dict[Path, bool]:
    """What the data set was unpacked from, and whether it is whole."""
    from torchvision.datasets.utils import check_integrity

    if kind.__name__ == "CIFAR10":
        expected = {folder / kind.filename: kind.tgz_md5}
    else:
        expected = {folder / "MNIST" / "raw" / name: md5 for name, md5 in kind.resources}
    return {path: check_integrity(path, md5) for path, md5 in expected.items()}


def _is_whole_idx(path: Path) -> bool:
    """Whether an IDX file (MNIST's format) is as long as its own header says.

    The header: two zero bytes, the type (8: bytes), the number of dimensions, then each of them
    as four bytes, the highest first.
    """
    if not path.exists():
        return False
    with path.open("rb") as file:
        start = file.read(4)
        if len(start) < 4 or start[:3] != b"\0\0\x08":
            return False
        dimensions = file.read(4 * start[3])
    sizes = np.frombuffer(dimensions[: len(dimensions) // 4 * 4], dtype=">u4")
    header = 4 + 4 * start[3]
    return path.stat().st_size == header + int(np.prod(sizes, dtype=np.int64))


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process is inside; the system lets go for one that is killed."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _impatient() -> Iterator[None]:
    """Give up on a server that says nothing."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
