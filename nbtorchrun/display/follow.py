"""Follows what the ranks of a running launch write: their logs and events."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbtorchrun.runs import event


class Tail:
    """Reads what was added to a log since the last call."""

    AT_ONCE = 4_000_000  # bytes that are read at a time
    LONGEST = 100_000  # bytes of an unfinished line that are kept

    def __init__(self, path: Path):
        self.path = path
        self._position = 0
        self._rest = b""

    def lines(self, final: bool = False) -> list[str]:
        """The lines completed since the last call; with `final` also the unfinished last one."""
        lines = []
        while added := self._added():
            *whole, rest = (self._rest + added).split(b"\n")
            lines += whole
            self._rest = rest[-self.LONGEST :]
            if not final:
                break
        if final and self._rest:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="backslashreplace") for line in lines]

    def _added(self) -> bytes:
        try:
            with open(self.path, "rb") as log:
                log.seek(self._position)
                added = log.read(self.AT_ONCE)
        except FileNotFoundError:
            return b""
        self._position += len(added)
        return added


class Events(Tail):
    """Reads what a rank has recorded since the last call."""

    def new(self) -> Iterator[dict[str, Any]]:
        """The events recorded since the last call."""
        yield from filter(None, map(event, self.lines()))
