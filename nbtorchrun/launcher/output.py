"""Watches how much the ranks of a run write: one that prints without end would fill the disk."""

import contextlib
import os
import time
from pathlib import Path

from nbtorchrun.formats import size
from nbtorchrun.runs import Run

# Bytes that a rank may write to each of its files.
LIMITS = {"stdout.log": 100_000_000, "stderr.log": 100_000_000, "events.jsonl": 250_000_000}
# Who has written so many bytes, and still writes so many a second, does not come to an end.
LEAST, RATE = 50_000, 10_000
RECENTLY = 1.0  # seconds
CUT = b"\n... the rest is cut: the rank wrote more than a run may\n"


class Output:
    """The output of one run."""

    def __init__(self, run: Run):
        self._run = run
        self._before: dict[Path, int] = {}
        self._noted: dict[Path, int] = {}
        self._now: dict[Path, int] = {}
        self._before_at = self._noted_at = time.monotonic()

    def too_much(self) -> str:
        """Which rank has written more than it may, as a sentence; '' if none has."""
        now = time.monotonic()
        if now - self._noted_at >= RECENTLY:  # so what was noted before that is older still
            self._before, self._before_at = self._noted, self._noted_at
            self._noted, self._noted_at = self._now, now
        self._now = self._sizes()
        over = [path for path, written in self._now.items() if written > LIMITS[path.name]]
        return f"the run was stopped: {self._told(over[0])}" if over else ""

    def without_end(self) -> str:
        """Which rank has written much and just wrote more, as a clause; '' if none has."""
        much = RATE * (time.monotonic() - self._before_at)
        growing = [
            path
            for path, written in self._now.items()
            if written > LEAST and written - self._before.get(path, written) > much
        ]
        return self._told(growing[0]) if growing else ""

    def cut(self) -> None:
        """Leave no file longer than it may be; all ranks have ended."""
        for path, written in self._sizes().items():
            if written > LIMITS[path.name]:
                os.truncate(path, LIMITS[path.name])
                with open(path, "ab") as log:
                    log.write(CUT)

    def _told(self, path: Path) -> str:
        number = next(rank.number for rank in self._run.ranks if rank.dir == path.parent)
        does = "reports" if path.name == "events.jsonl" else "prints"
        return f"rank {number} {does} without end ({size(self._now[path])} so far)"

    def _sizes(self) -> dict[Path, int]:
        sizes = {}
        for path in (rank.dir / name for rank in self._run.ranks for name in LIMITS):
            with contextlib.suppress(OSError):  # the rank has not begun, or its folder is removed
                sizes[path] = path.stat().st_size
        return sizes
