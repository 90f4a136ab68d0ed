"""A rank's stderr in a terminal: a final traceback is held back until the verdict is known."""

from pathlib import Path

from course_utils.display.follow import Tail

FIRST = "Traceback (most recent call last)"
BETWEEN = (  # what Python writes between the tracebacks of a chain
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


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
