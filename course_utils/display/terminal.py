"""A run as a terminal shows it: labelled lines as they come, and how far the ranks are."""

import sys

from course_utils.display import ansi, text
from course_utils.display.follow import Events, Progress, Tail
from course_utils.launcher import Screen
from course_utils.runs import Run

AT_ONCE = 150, 50  # first and last lines of a rank that are shown in one update


class Terminal(Screen):
    """`[rank 1] line` for each line as it comes; colours and a progress line on a real terminal."""

    def __init__(self, run: Run, notice: str):
        self._tails = [(rank, Tail(rank.dir / "stdout.log")) for rank in run.ranks]
        self._tails += [(rank, Tail(rank.dir / "stderr.log")) for rank in run.ranks]
        self._events: Events | None = Events(run.ranks[0].dir / "events.jsonl")
        self._progress = Progress(run)
        self._live = ansi.is_live()
        self._bar = ""
        print("\n".join(filter(None, [run.command, notice])), flush=True)

    def update(self, final: bool = False) -> None:
        """Print what the ranks have said since."""
        lines = [
            f"{label(rank.number)} {line}"
            for rank, tail in self._tails
            for line in text.capped(tail.lines(final), str(tail.path), *AT_ONCE)
        ]
        lines = [*self._place(), *lines]
        bar = self._progress.line() if self._live and not final else ""
        bar = bar.partition("\n")[0][: ansi.width() - 1]  # only one line can be drawn anew
        if lines or bar != self._bar:
            erase = ansi.ERASE if self._bar else ""
            sys.stdout.write(erase + "".join(line + "\n" for line in lines) + bar)
            sys.stdout.flush()
            self._bar = bar

    def _place(self) -> list[str]:
        """Once, as soon as rank 0 has told it: what the ranks talk over, and where they compute."""
        for event in self._events.new() if self._events else ():
            if event["kind"] == "group":  # it has joined the others
                self._events = None
                return [f"{event['data']['backend']} · {event['data']['device']}"]
        return []

    def fold(self) -> None:
        """Take the progress line away: the run is being stopped."""
        if self._bar:
            sys.stdout.write(ansi.ERASE)
            sys.stdout.flush()
            self._bar = ""

    def close(self, run: Run) -> None:
        """Print the rest, the results and how it went."""
        self.update(final=True)
        for rank in run.ranks:
            for values in text.results(rank):
                print(label(rank.number), values)
        print(text.headline(run), flush=True)


def label(number: int) -> str:
    """What stands before each line of a rank."""
    return ansi.rank(number, f"[rank {number}]")
