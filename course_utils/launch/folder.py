"""The folders runs write to: private, one a run, removed when nobody can need them any more."""

import atexit
import contextlib
import os
import shutil
import time
import weakref
from pathlib import Path

from course_utils import places
from course_utils.launch.processes import is_alive

KEPT_FAILURES = 20  # run folders of failed runs that outlive their process

_session: Path | None = None
_owner = 0
_runs = 0


def session_folder() -> Path:
    """The folder of this process, for its runs and its agent's log."""
    global _session, _owner
    if _session is None or _owner != os.getpid():  # a fork is a process of its own
        _owner = os.getpid()
        _remove_leftovers()
        _session = places.runs() / f"{time.strftime('%Y%m%d-%H%M%S')}-{_owner}"
        _session.mkdir(mode=0o700, exist_ok=True)
        atexit.register(_leave, _session, _owner)
    return _session


class RunFolder:
    """The folder of one run. It goes with the last reference to it, unless the run failed."""

    def __init__(self, name: str):
        global _runs
        _runs += 1
        self.path = session_folder() / f"{_runs:03d}-{name}"
        self.path.mkdir(mode=0o700)
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def keep(self) -> None:
        """Keep the folder of a failed run, and no more of them than `KEPT_FAILURES`."""
        self._remove.detach()
        (self.path / "failed").touch()
        failed = sorted(places.runs().glob("*/*/failed"), key=_age)
        for marker in failed[:-KEPT_FAILURES]:
            shutil.rmtree(marker.parent, ignore_errors=True)
            with contextlib.suppress(OSError):  # it holds other runs
                marker.parent.parent.rmdir()


def _remove_leftovers() -> None:
    """Remove the folders of processes that were killed, unless a failed run is kept in them."""
    for session in places.runs().iterdir():
        owner = session.name.rpartition("-")[2]
        if owner.isdigit() and not is_alive(int(owner)) and not any(session.glob("*/failed")):
            shutil.rmtree(session, ignore_errors=True)


def _age(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def _leave(session: Path, owner: int) -> None:
    """Remove the session's folder at exit, unless a failed run is kept in it."""
    if os.getpid() == owner and not any(session.glob("*/failed")):
        shutil.rmtree(session, ignore_errors=True)
