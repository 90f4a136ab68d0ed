"""Data sets that torchvision downloads, once; they are put in place only when complete."""

import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

PATIENCE = 20.0  # seconds that a server may be silent


class DataError(RuntimeError):
    """A data set is missing or damaged; the message says what to do."""


def load(name: str, folder: Path, download: bool) -> list[Any]:
    """Both parts of a data set, training first, as torchvision loads them.

    Of several processes that ask at once, one downloads and the others wait.

    Args:
        name: `mnist` or `cifar10`.
        folder: where the data set is, or will be.
        download: fetch it if it is missing or damaged.

    Raises:
        DataError: the data set is missing or damaged, and was not downloaded.
    """
    from torchvision import datasets  # slow to import, and the digits do not need it

    kind = {"mnist": datasets.MNIST, "cifar10": datasets.CIFAR10}[name]
    with suppress(Exception):  # each format reports damage differently
        return _read(kind, folder)
    remedy = 'or use images("digits"), which need no download (--data digits in a script)'
    if not download:
        raise DataError(
            f"{kind.__name__} in {folder} is missing or damaged: "
            f'call images("{name}") without download=False to fetch it, {remedy}'
        )
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)  # torchvision sets none, and would wait forever
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{name}.lock"):
            with suppress(Exception):  # another process fetched it while we waited
                return _read(kind, folder)
            return _fetch(kind, folder)
    except Exception as error:  # whatever went wrong, the caller gets one sentence
        reason = str(error).strip().rpartition("\n")[2].rstrip(".:") or type(error).__name__
        raise DataError(
            f"{kind.__name__} was not downloaded to {folder} ({reason}): "
            f"check the internet connection and try again, {remedy}"
        ) from None
    finally:
        socket.setdefaulttimeout(before)


def _read(kind: Any, folder: Path) -> list[Any]:
    """Both parts of a data set that is in `folder`."""
    return [kind(str(folder), train=part) for part in (True, False)]


def _fetch(kind: Any, folder: Path) -> list[Any]:
    """Download into a temporary folder, and move the data set into place if it can be read."""
    name = getattr(kind, "base_folder", kind.__name__)  # of the folder that torchvision makes
    partial = folder / f".{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed
    try:
        kind(str(partial), download=True)
        parts = _read(kind, partial)
        shutil.rmtree(folder / name, ignore_errors=True)
        (partial / name).rename(folder / name)
        return parts
    finally:
        shutil.rmtree(partial, ignore_errors=True)
