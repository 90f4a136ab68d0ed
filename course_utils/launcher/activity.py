"""Whether the ranks of a run do anything: compute, print or report."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from course_utils.launcher import processes

WINDOW = 1.0  # seconds over which the CPU time of the ranks is compared
BUSY = 0.02  # of a core: what waiting ranks use stays below it
TICKS = os.sysconf("SC_CLK_TCK")


class Activity:
    """Watches the ranks of one run."""

    def __init__(self, run_dir: Path, ranks: int):
        self._run_dir = run_dir
        self._ranks = ranks
        self._last = self._looked = time.monotonic()
        self._cpu, self._written = 0.0, 0

    def quiet(self) -> float:
        """Seconds since any rank last computed, printed or reported."""
        now = time.monotonic()
        if now - self._looked >= WINDOW:
            cpu, written = self._cpu_seconds(), self._bytes_written()
            starting = len(processes.rank_pids(self._run_dir)) < self._ranks
            if (
                starting
                or cpu - self._cpu >= BUSY * (now - self._looked)
                or written != self._written
            ):
                self._last = now
            self._looked, self._cpu, self._written = now, cpu, written
        return now - self._last

    def stopped(self) -> set[int]:
        """The ranks that a signal has stopped, as SIGSTOP does."""
        pids = processes.rank_pids(self._run_dir)
        return {rank for rank, pid in pids.items() if _status(pid)[1] == "T"}

    def _cpu_seconds(self) -> float:
        return sum(_status(pid)[0] for pid in processes.rank_pids(self._run_dir).values())

    def _bytes_written(self) -> int:
        total = 0
        for pattern in ("rank_*/*.log", "rank_*/*.jsonl"):
            for path in self._run_dir.glob(pattern):
                with contextlib.suppress(FileNotFoundError):
                    total += path.stat().st_size
        return total


def _status(pid: int) -> tuple[float, str]:
    """CPU seconds a process and its ended children have used, and its state as ps names it."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0, ""
        return sum(map(int, fields[11:15])) / TICKS, fields[0]
    shown = subprocess.run(
        ["ps", "-o", "time=,state=", "-p", str(pid)], capture_output=True, text=True
    ).stdout.split()
    if len(shown) < 2:
        return 0.0, ""
    minutes, _, seconds = shown[0].rpartition(":")
    return 60 * float(minutes.rpartition(":")[2] or 0) + float(seconds), shown[1][0]
