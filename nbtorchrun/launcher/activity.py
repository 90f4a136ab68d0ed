"""Watches whether the ranks of a run do anything: compute, print or report."""

import contextlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from nbtorchrun.diagnosis.calls import Call, answer, unended_call
from nbtorchrun.diagnosis.evidence import Evidence
from nbtorchrun.launcher import processes
from nbtorchrun.runs import Run
from nbtorchrun.worker.asking import ask

WINDOW = 1.0  # seconds over which the CPU time of the ranks is compared
BUSY = 0.02  # of a core: what waiting ranks use stays below it
# The thread in which gloo serves its sockets. If a script drops the work of an `isend`, its message
# can never be written. But the socket stays writable, so epoll keeps returning at once, and this
# thread keeps a whole core busy. Its time does not count: the run may hang all the same.
TRANSPORT = "gloo_tcp_loop"
LONGEST_ANSWER = 1.0  # seconds that the ranks have to say how they stand
PATIENCE = 1.0  # seconds that torchrun has to end the run when a rank has ended badly


class Activity:
    """Watches the ranks of one run, and every process that they start."""

    def __init__(self, run: Run):
        self._run = run
        self._last = self._looked = time.monotonic()
        self._cpu: dict[psutil.Process, float] = {}
        self._on_gpu: dict[int, Call | None] = {}
        self._written = self._read = 0
        self._gone: set[int] = set()
        self._looked_for_gone = self._last
        self._calls: list[bytes] = []
        self._looked_for_calls = self._called = self._last

    def quiet(self) -> float:
        """Seconds since any rank, or a process that it started, last computed, read or wrote."""
        now = time.monotonic()
        if now - self._looked >= WINDOW:
            ranks = processes.rank_processes(self._run.dir)
            spinning = self._spinning(ranks)
            trees = [_tree(rank)[i in spinning :] for i, rank in ranks.items()]
            # Ticks of a process and of its transport thread are rounded apart, so what is left
            # goes up and down by some of them: only more than ever before is work.
            seen = self._cpu
            cpu = {p: max(_cpu_seconds(p), seen.get(p, 0.0)) for tree in trees for p in tree}
            used = sum(seconds - seen.get(p, 0.0) for p, seconds in cpu.items())
            written = self._bytes_written()
            read = sum(_bytes_read(process) for process in cpu)
            starting = len(processes.begun(self._run.dir)) < len(self._run.ranks)
            moved = written != self._written or read > self._read
            if starting or moved or used >= BUSY * (now - self._looked):
                self._last = now
            self._looked, self._cpu, self._written, self._read = now, cpu, written, read
        return now - self._last

    def _spinning(self, ranks: Iterable[int]) -> set[int]:
        """The ranks whose GPU is in the same collective as before: they spin, and do no work."""
        before = self._on_gpu
        self._on_gpu = {i: unended_call(self._run.ranks[i]) for i in ranks}
        return {i for i, call in self._on_gpu.items() if call and call == before.get(i)}

    def stopped(self) -> set[int]:
        """The ranks that a signal has stopped, as SIGSTOP does."""
        ranks = processes.rank_processes(self._run.dir)
        return {i for i, rank in ranks.items() if _status(rank) == psutil.STATUS_STOPPED}

    def gone(self) -> set[int]:
        """The ranks that ended badly some time ago: with an error, or without a record of how."""
        now = time.monotonic()
        if now - self._looked_for_gone < PATIENCE:
            return set()
        begun = processes.begun(self._run.dir)
        ended = begun.keys() - processes.rank_processes(self._run.dir).keys()
        ends = {index: self._run.ranks[index].last("end") or {} for index in ended}
        gone = {index for index, end in ends.items() if end.get("status") != 0}
        before, self._gone, self._looked_for_gone = self._gone, gone, now
        return gone & before

    def ask(self) -> None:
        """Have each rank write down how it stands (worker/asked.py); wait until they have."""
        asked_at, stopped = time.monotonic_ns(), self.stopped()
        asked = [r for r in self._run.ranks if ask(r.dir) and r.index not in stopped]
        end = time.monotonic() + LONGEST_ANSWER
        while time.monotonic() < end:
            if all(answer(rank).get("at", 0) > asked_at for rank in asked):
                return
            time.sleep(0.01)

    def mismatched(self, seconds: float) -> bool:
        """Whether for so long all ranks have waited in calls that can't match.

        That no rank will ever return is then certain, whatever its other threads do.
        """
        now = time.monotonic()
        if now - self._looked_for_calls < WINDOW:
            return False
        calls = [_read(rank.dir / "calls.txt") for rank in self._run.ranks]
        if calls != self._calls:
            self._calls, self._called = calls, now
        self._looked_for_calls = now
        if now - self._called < seconds + 2 * WINDOW:  # `quiet`, which knows more, comes first
            return False
        self._called = now  # else it would ask again in a second
        self.ask()
        return Evidence(self._run, {}, len(self._run.ranks)).mismatched

    def _bytes_written(self) -> int:
        total = 0
        for pattern in ("rank_*/*.log", "rank_*/*.jsonl"):
            for path in self._run.dir.glob(pattern):
                with contextlib.suppress(OSError):
                    total += path.stat().st_size
        return total


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def _status(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return process.status()
    return psutil.STATUS_DEAD  # it has ended meanwhile


def _tree(process: psutil.Process) -> list[psutil.Process]:
    """A process and all its descendants."""
    with contextlib.suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


def _cpu_seconds(process: psutil.Process) -> float:
    """CPU seconds of a process and its ended children, without gloo's transport threads."""
    try:
        seconds = sum(process.cpu_times()[:4])  # user and system, its own and its children's
        threads = process.threads() if sys.platform == "linux" else []
    except psutil.Error:
        return 0.0
    for thread in threads:
        with contextlib.suppress(OSError):  # it has ended
            name = Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text().strip()
            if name == TRANSPORT:
                seconds -= thread.user_time + thread.system_time
    return seconds


def _bytes_read(process: psutil.Process) -> int:
    """Bytes that a process has had to fetch from disk.

    A rank that imports from a cold disk waits for its pages, and computes next to nothing.
    """
    with contextlib.suppress(AttributeError, psutil.Error):  # macOS does not count them
        return process.io_counters().read_bytes
    return 0
