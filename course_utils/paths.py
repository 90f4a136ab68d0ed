"""Where things are: the checkout, its notebooks, a student's copies, worker files, run folders."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from course_utils.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
# What an error says of a folder and not of the program that writes there.
CANNOT_WRITE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOENT, errno.ENOTDIR),
}


def home() -> Path:
    """The folder that holds `my/`, `workers/` and the run folders.

    `COURSE_HOME` if it is set; otherwise the checkout, or the user's cache folder if the checkout
    is read-only.
    """
    if chosen := os.environ.get("COURSE_HOME"):
        return Path(chosen).expanduser().resolve()
    if os.access(ROOT, os.W_OK):
        return ROOT
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "distributed-course"


def data() -> Path:
    """The folder of downloaded data: `data/` of the checkout, unless it is empty and read-only."""
    ours = ROOT / "data"
    filled = any(path.is_dir() for path in ours.glob("*"))
    return ours if filled or os.access(ours, os.W_OK) else home() / "data"


def workers() -> Path:
    """The folder of the worker files; made if it does not exist."""
    return _folder(home() / "workers")


def my() -> Path:
    """The folder of the student's own copies of the notebooks; made if it does not exist."""
    return _folder(home() / "my")


def runs() -> Path:
    """The private folder that holds a folder for each run; made if it does not exist."""
    folder = _folder(home() / ".runs", mode=0o700)
    found, me = folder.stat(), os.getuid()
    if me not in (found.st_uid, 0):  # root in a container works in a user's folder
        raise InputError(
            f"{folder} belongs to another user, who could read and change what your runs do: set "
            "COURSE_HOME to a folder of your own"
        )
    if found.st_uid == me and found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Say in one sentence that the folders of `home()` cannot be written to.

    Raises:
        InputError: the disk is full, or the folder cannot be made or belongs to someone else.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        raise InputError(
            f"cannot write to {home()} ({error.strerror}): make room there, or set COURSE_HOME to "
            "a folder that you can write to"
        ) from None


def replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader, also after an interrupt, has the old one or the new one.

    Raises:
        InputError: it cannot be written.
    """
    part = path.with_suffix(".part")
    with writing():
        part.write_bytes(data)
        os.replace(part, path)


def _folder(path: Path, mode: int = 0o777) -> Path:
    with writing():
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    return path
