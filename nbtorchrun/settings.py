"""Where scripts lie and where runs are kept: one answer for this process, set by `configure`."""

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from nbtorchrun.errors import InputError

# What an error says of a folder and not of the program that writes there.
CANNOT_WRITE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOENT, errno.ENOTDIR),
}

# Modules that ranks import, also inside torch: a script of that name would take their place.
TAKEN = sys.stdlib_module_names | {"torch", "torchvision", "numpy", "psutil"}
TAKEN |= {"nbtorchrun", "course_utils"}


def _user_cache() -> Path:
    if chosen := os.environ.get("NBTORCHRUN_HOME"):
        return Path(chosen).expanduser().resolve()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "nbtorchrun"


_folder: Callable[[], Path] = Path.cwd
_home: Callable[[], Path] = _user_cache
_home_variable = "NBTORCHRUN_HOME"
_missing: Callable[[str], Path] | None = None
_advice = "Write it with %%torchrun {}"
_launched_from: set[Path] = set()  # folders of scripts that were named by their paths
preload: tuple[str, ...] = ()


def configure(
    folder: Callable[[], Path],
    home: Callable[[], Path],
    *,
    home_variable: str = "NBTORCHRUN_HOME",
    missing: Callable[[str], Path] | None = None,
    advice: str = "Write it with %%torchrun {}",
    preload: tuple[str, ...] = (),
) -> None:
    """Set, once for this process, where scripts lie and where runs are kept.

    Args:
        folder: gives the folder of the scripts; by default the working folder.
        home: gives the folder in which `.runs`, the folders of runs, is made.
        home_variable: the environment variable by which a user chooses `home`, for messages.
        missing: gives the path of the script that `launch` was asked for, and may write it first;
            raises InputError for a name that it refuses. By default the path below `folder`.
        advice: what to do about a script that is not there; {} stands for its name.
        preload: modules that the process imports from which warm ranks are forked.
    """
    # A global for each: a process has one agent and one folder of runs, whoever launches.
    this = globals()
    this.update(_folder=folder, _home=home, _home_variable=home_variable, _missing=missing)
    this.update(_advice=advice, preload=preload)


def folder() -> Path:
    """The folder of the scripts."""
    return _folder()


def script_path(script: str | Path) -> Path:
    """The path of the script that `launch` was asked for.

    Raises:
        InputError: it is not a Python file, or is refused by whoever called `configure`.
    """
    if _missing:
        return _missing(str(script))
    if Path(script).suffix != ".py":
        raise InputError(f"{script} is not a Python file: its name must end in .py")
    path = folder() / script
    refuse_taken(path)
    _launched_from.add(path.parent)
    return path


def refuse_taken(path: Path) -> None:
    """Refuse a script whose name belongs to a module that ranks need.

    Raises:
        InputError: it does.
    """
    if path.stem in TAKEN:
        raise InputError(
            f"{shown(path)} has the name of a module that Python and torch need: ranks would "
            f"import the file in its place. Call it something else, such as my_{path.name}"
        )


def is_users(file: str) -> bool:
    """Whether a file lies where the user's scripts lie, and not in a library."""
    parent = Path(file).parent
    return parent == folder() or parent in _launched_from


def shown(path: str | Path) -> str:
    """A script's path as messages show it: `workers/train.py`, or as seen from here."""
    path = Path(path)
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it has been deleted
        here = None
    if path.parent != here and path.parent == folder():
        return f"{path.parent.name}/{path.name}"
    return str(path.relative_to(here)) if here and path.is_relative_to(here) else str(path)


def advice(script: str) -> str:
    """What to do about a script that is not there."""
    return _advice.format(script)


def runs() -> Path:
    """The private folder that holds a folder for each run; made if it does not exist."""
    made = make(_home() / ".runs", mode=0o700)
    found, me = made.stat(), os.getuid()
    if me not in (found.st_uid, 0):  # root in a container works in a user's folder
        raise InputError(
            f"{made} belongs to another user, who could read and change what your runs do: set "
            f"{_home_variable} to a folder of your own"
        )
    if found.st_uid == me and found.st_mode & 0o077:
        made.chmod(0o700)
    return made


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Say in one sentence that the folders of `home` cannot be written to.

    Raises:
        InputError: the disk is full, or the folder cannot be made or belongs to someone else.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        raise InputError(
            f"cannot write to {_home()} ({error.strerror}): make room there, or set "
            f"{_home_variable} to a folder that you can write to"
        ) from None


def make(path: Path, mode: int = 0o777) -> Path:
    """The folder at that path, made if it does not exist.

    Raises:
        InputError: it cannot be made.
    """
    with writing():
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    return path


def replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader, also after an interrupt, has the old one or the new one.

    Raises:
        InputError: it cannot be written.
    """
    # A name that nobody else uses: neither a user's file, nor another thread that writes this one.
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    with writing():
        try:
            part.write_bytes(data)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)  # as when the disk is full
