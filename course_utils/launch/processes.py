"""The rank processes of a run, as the notebook's side knows them: by the pids they wrote down."""

import contextlib
import os
import signal
from pathlib import Path


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
    """Kill every rank and the processes it started."""
    for pid in rank_pids(run_dir).values():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # each rank leads a process group: worker/guards.py


def dump_stacks(run_dir: Path) -> None:
    """Ask every rank to write its Python stacks to `rank_N/stack.txt`."""
    for pid in rank_pids(run_dir).values():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGUSR1)
