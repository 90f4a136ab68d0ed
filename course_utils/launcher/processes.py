"""The rank processes of a run, as the notebook's side knows them: by the pids they wrote down."""

import contextlib
import os
import signal
from pathlib import Path

from course_utils.worker.guards import OVER


def rank_pids(run_dir: Path) -> dict[int, int]:
    """The pid of each rank of this machine that has started, by index."""
    pids = {}
    for path in run_dir.glob("rank_*/pid"):
        with contextlib.suppress(ValueError, IndexError):  # made, and not yet written
            pids[int(path.parent.name.removeprefix("rank_"))] = int(path.read_text().split()[0])
    return pids


def is_alive(pid: int) -> bool:
    """Whether there is a process of that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def kill_ranks(run_dir: Path) -> None:
    """Kill every rank and the processes it started; one that begins after this ends itself."""
    with contextlib.suppress(FileNotFoundError):
        (run_dir / OVER).touch()
    for pid in rank_pids(run_dir).values():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # each rank leads a process group: worker/guards.py


def kill_strays(run_dir: Path) -> None:
    """Kill what ranks started in sessions of their own: the run's folder is in its environment.

    On Linux alone, and only what is a program of its own: a fork has its parent's environment.
    It looks at every process of the machine, so it is for runs that failed.
    """
    mark = f"COURSE_RUN_DIR={run_dir}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)


def dump_stacks(run_dir: Path) -> None:
    """Ask every rank to write its Python stacks to `rank_N/stack.txt`."""
    for pid in rank_pids(run_dir).values():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGUSR1)
