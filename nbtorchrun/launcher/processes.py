"""The rank processes of a run, which the notebook's side knows by pid and start time."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

import psutil

from nbtorchrun.worker.guards import OVER, WANT_STACKS, start_of

LONGEST_DUMP = 1.0  # seconds that the ranks have to begin to write their stacks
LONGEST_LOAD = 0.3  # seconds that a process may take to show the environment of a new program


class Begun(NamedTuple):
    """What a rank wrote down as it began: its pid, its start (`start_of`) and its session."""

    pid: int
    started: float
    session: int


def begun(run_dir: Path) -> dict[int, Begun]:
    """What each rank of this machine that has begun wrote down, by index."""
    written = {}
    for path in run_dir.glob("rank_*/pid"):
        with contextlib.suppress(ValueError, OSError):  # not yet written, or removed meanwhile
            pid, _, started, session = path.read_text().split()
            index = int(path.parent.name.removeprefix("rank_"))
            written[index] = Begun(int(pid), float(started), int(session))
    return written


def rank_processes(run_dir: Path) -> dict[int, psutil.Process]:
    """The living rank processes of this machine, by index."""
    living = {}
    for index, rank in begun(run_dir).items():
        with contextlib.suppress(psutil.Error):  # it has ended
            process = psutil.Process(rank.pid)
            if start_of(rank.pid) == rank.started and process.status() != psutil.STATUS_ZOMBIE:
                living[index] = process
    return living


def declare_over(run_dir: Path) -> None:
    """Say that ranks are being ended: one that begins later ends itself, no other notes its end.

    A script may handle the signal that ends it, and call `sys.exit(0)`: that was not its doing.
    """
    with contextlib.suppress(OSError):  # the folder was removed
        (run_dir / OVER).touch()


def is_over(run_dir: Path) -> bool:
    """Whether the ranks are being ended."""
    return (run_dir / OVER).exists()


def kill_ranks(run_dir: Path) -> None:
    """Kill every rank and the processes it started."""
    declare_over(run_dir)
    for rank in begun(run_dir).values():
        # Each rank leads a process group (worker/guards.py), which may outlive the rank.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if _lives(rank) or _left_its_group(rank):
                os.killpg(rank.pid, signal.SIGKILL)


def kill_strays(run_dir: Path) -> None:
    """Kill programs that ranks started in other sessions, which `kill_ranks` does not reach.

    The run's folder in their environment gives them away (a plain fork shows its parent's
    environment). This looks at every process of the machine, so it is for runs that failed.
    """
    first = min((rank.started for rank in begun(run_dir).values()), default=math.inf)
    unclear = [each for each in psutil.process_iter() if not _settled(each, run_dir, first)]
    deadline = time.monotonic() + LONGEST_LOAD  # from now: that look may have taken as long
    while unclear and time.monotonic() < deadline:
        time.sleep(0.001)
        unclear = [each for each in unclear if not _settled(each, run_dir, first)]


def _settled(process: psutil.Process, run_dir: Path, first: float) -> bool:
    """Kill the process if it is a stray; False: it could be one, and does not show it yet."""
    with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
        environ = process.environ()
        if environ.get("NBTORCHRUN_RUN_DIR") == str(run_dir):
            process.kill()
        elif not environ and start_of(process.pid) >= first:
            # While Linux loads a program, the process has memory, but no environment yet.
            return process.memory_info().vms == 0
    return True


def dump_stacks(run_dir: Path, left: Container[int] = (), stopped: Container[int] = ()) -> None:
    """Ask the ranks to write their Python stacks to `rank_N/stack.txt`, and wait until they begin.

    A busy machine may not let a rank run for a while.

    Args:
        left: ranks that have left their script, by `exec`: the signal would end what runs there.
        stopped: ranks that SIGSTOP has stopped: they are asked, and not awaited.
    """
    asked = {i: process for i, process in rank_processes(run_dir).items() if i not in left}
    for process in asked.values():
        with contextlib.suppress(psutil.Error):
            process.send_signal(WANT_STACKS)
    awaited = [run_dir / f"rank_{i}" / "stack.txt" for i in asked if i not in stopped]
    end = time.monotonic() + LONGEST_DUMP
    with contextlib.suppress(OSError):  # the run's folder was removed
        while time.monotonic() < end and not all(file.stat().st_size for file in awaited):
            time.sleep(0.01)


def _lives(rank: Begun) -> bool:
    """Whether the rank still has its pid, though it may have ended a moment ago."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return start_of(rank.pid) == rank.started
    return False


def _left_its_group(rank: Begun) -> bool:
    """Whether the group that the rank led still exists, with processes that the rank started.

    While it does, nobody else gets its number. Once it is empty, another process may get the
    number, lead a group and end, too. That group is in another session.
    """
    os.killpg(rank.pid, 0)  # raises if there is no such group, as after most runs
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == rank.pid:
                return os.getsid(pid) == rank.session
    return False
