"""The folders that runs write to: private, one per run, removed when nobody needs them."""

import atexit
import contextlib
import functools
import glob
import os
import re
import shutil
import socket
import tempfile
import time
import weakref
from pathlib import Path

import psutil

from nbtorchrun import settings

KEPT_FAILURES = 20  # run folders of failed runs that outlive their process
MACHINE = re.sub(r"\W", "_", socket.gethostname())  # other machines may share the disk


def session_folder() -> Path:
    """The folder of this process, for its runs and its agent's log."""
    session = settings.runs() / _session_name(os.getpid())  # a fork gets its own folder
    session.mkdir(mode=0o700, exist_ok=True)  # `./run.sh clean` may have removed it
    return session


@functools.cache
def _session_name(owner: int) -> str:
    """The name of that process's folder, chosen once; the folder is then removed at exit."""
    # First remove what killed processes left. Only this machine's: others' may still be alive.
    for session in settings.runs().glob(f"*-{MACHINE}-*"):
        pid = session.name.rpartition("-")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            _remove(session)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{MACHINE}-{owner}"
    atexit.register(_remove, settings.runs() / name, owner)
    return name


class RunFolder:
    """The folder of one run. It is removed with the last reference to it, unless the run failed."""

    def __init__(self, name: str):
        started = time.strftime("%H%M%S")
        with settings.writing():
            self.path = Path(tempfile.mkdtemp(prefix=f"{started}-{name}-", dir=session_folder()))
        self._remove = weakref.finalize(self, _remove_run, self.path, os.getpid())

    def discard(self) -> None:
        """Remove the folder at once, kept or not."""
        shutil.rmtree(self.path, ignore_errors=True)

    def keep(self) -> None:
        """Keep the folder of a failed run, and at most `KEPT_FAILURES` such folders."""
        self._remove.detach()
        with contextlib.suppress(FileNotFoundError):  # it was removed while the run lived
            (self.path / "failed").touch()
        runs = settings.runs()
        failures = [runs / found for found in glob.glob("*/*/failed", root_dir=runs)]
        for marker in sorted(failures, key=_age)[:-KEPT_FAILURES]:
            shutil.rmtree(marker.parent, ignore_errors=True)
            with contextlib.suppress(OSError):  # it holds other runs
                marker.parent.parent.rmdir()


def _remove_run(folder: Path, owner: int) -> None:
    """Remove a run's folder, unless a fork of its owner asks: the owner still has it."""
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _remove(session: Path, owner: int | None = None) -> None:
    """Remove a session's folder, unless it keeps a failed run or a fork of its owner asks."""
    if owner in (None, os.getpid()) and not glob.glob("*/failed", root_dir=session):
        shutil.rmtree(session, ignore_errors=True)


def _age(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
