"""The rank processes of a run, which the notebook's side knows by pid and start time."""

import contextlib
import math
import os
import signal
import time
from pathlib import Path

import psutil

from course_utils.worker.guards import OVER, start_of

LONGEST_LOAD = 0.3  # seconds that a process may take to show the environment of a new program


def begun(run_dir: Path) -> dict[int, tuple[int, float]]:
    """The pid and start (`start_of`) of each rank of this machine that has begun, by index."""
    written = {}
    for path in run_dir.glob("rank_*/pid"):
        with contextlib.suppress(ValueError, OSError):  # not yet written, or removed meanwhile
            pid, _, started = path.read_text().split()
            written[int(path.parent.name.removeprefix("rank_"))] = int(pid), float(started)
    return written


def rank_processes(run_dir: Path) -> dict[int, psutil.Process]:
    """The living rank processes of this machine, by index."""
    living = {}
    for index, (pid, started) in begun(run_dir).items():
        with contextlib.suppress(psutil.Error):  # it has ended
            process = psutil.Process(pid)
            if start_of(pid) == started and process.status() != psutil.STATUS_ZOMBIE:
                living[index] = process
    return living


def kill_ranks(run_dir: Path) -> None:
    """Kill every rank and the processes it started; a rank that begins later ends itself."""
    with contextlib.suppress(OSError):  # the folder was removed
        (run_dir / OVER).touch()
    for pid, started in begun(run_dir).values():
        # Each rank leads a process group (worker/guards.py), which may outlive the rank. As long as
        # the group exists, the kernel gives its number to no other process, so it is safe to kill.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not _is_another(pid, started):
                os.killpg(pid, signal.SIGKILL)


def kill_strays(run_dir: Path) -> None:
    """Kill programs that ranks started in other sessions, which `kill_ranks` does not reach.

    The run's folder in their environment gives them away (a plain fork shows its parent's
    environment). This looks at every process of the machine, so it is for runs that failed.
    """
    first = min((started for _, started in begun(run_dir).values()), default=math.inf)
    unclear, deadline = list(psutil.process_iter()), time.monotonic() + LONGEST_LOAD
    while unclear := [process for process in unclear if not _settled(process, run_dir, first)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.001)


def _settled(process: psutil.Process, run_dir: Path, first: float) -> bool:
    """Kill the process if it is a stray; False: it could be one, and does not show it yet."""
    with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
        environ = process.environ()
        if environ.get("COURSE_RUN_DIR") == str(run_dir):
            process.kill()
        elif not environ and start_of(process.pid) >= first:
            # While Linux loads a program, the process has memory, but no environment yet.
            return process.memory_info().vms == 0
    return True


def dump_stacks(run_dir: Path) -> None:
    """Ask every rank to write its Python stacks to `rank_N/stack.txt`."""
    for process in rank_processes(run_dir).values():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGUSR1)


def _is_another(pid: int, started: float) -> bool:
    """Whether the pid of a process that started at `started` is now another's."""
    try:
        return start_of(pid) != started
    except psutil.NoSuchProcess:
        return False
