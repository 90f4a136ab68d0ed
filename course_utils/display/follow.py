"""Follows what the ranks of a running launch write: their logs, tracebacks and events."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

FIRST = "Traceback (most recent call last)"
BETWEEN = (  # what Python writes between the tracebacks of a chain
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


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
        for line in self.lines():
            with suppress(json.JSONDecodeError):  # two processes of a rank reported at once
                yield json.loads(line)


class Stderr(Tail):
    """Reads a log as `Tail` does, and holds back a traceback until more lines follow it.

    Often many ranks fail in the same way: the terminal shows the traceback of only one.
    """

    def __init__(self, path: Path):
        super().__init__(path)
        self._held: list[str] = []

    def lines(self, final: bool = False) -> list[str]:
        """The lines completed since the last call, without a traceback that may be the last."""
        new = super().lines(final)
        if not new:
            return []
        caught = self._held if is_whole(self._held) else []  # the rank has more to say after it
        rest = self._held[len(caught) :] + new
        start = next((at for at, line in enumerate(rest) if line.startswith(FIRST)), len(rest))
        self._held = rest[start:]
        return caught + rest[:start]

    def held(self) -> list[str]:
        """Release the lines that are held back, and return them."""
        held, self._held = self._held, []
        return held


def is_whole(lines: list[str]) -> bool:
    """Whether these lines of a traceback include the one that names its error."""
    last = next((line for line in reversed(lines) if line), " ")
    return not last.startswith((" ", FIRST, *BETWEEN))
