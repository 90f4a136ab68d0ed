"""A run in a terminal: labelled lines as they come, and a progress bar below them."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Column

from nbtorchrun import palette
from nbtorchrun.display import text
from nbtorchrun.display.console import command_line, open_console, wrapped
from nbtorchrun.display.follow import Events, Tail
from nbtorchrun.launcher.running import Screen
from nbtorchrun.runs import Rank, Run

AT_ONCE = 150, 50  # first and last lines of a rank that are shown in one update
BAR = 30  # columns
TRACEBACK = "Traceback (most recent call last)"
PAUSE = 0.4  # seconds before the first word on a run, and between two
LONG = 10  # seconds from which on the bar also says how long the run has taken


class Terminal(Screen):
    """`[rank 1] line` for each line as it comes; colours and a progress bar on a real terminal.

    What the ranks wrote to stderr stands at the end, as in a notebook.
    """

    def __init__(self, run: Run, notice: str, alone: bool = False):
        """Begin to show a run; a rank that is `alone`, on all machines, needs no label."""
        self._alone = alone
        # Keep the Rank, not its number: the number is unknown before the rank has started.
        self._logs = [(rank, Tail(rank.dir / "stdout.log")) for rank in run.ranks]
        self._events = [Events(rank.dir / "events.jsonl") for rank in run.ranks]
        self._reports: Events | None = None  # those of the first rank that says how far it is
        self._joined = False
        self._began = self._redrawn = time.monotonic()
        self._console = open_console()
        self._progress = Progress(
            BarColumn(BAR),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=None)
        above = filter(None, (command_line(run.command), wrapped(notice, 0)))
        self._print([Segment(f"{line}\n") for line in above])

    def prepare(self) -> None:
        """Say that torch is being imported, in place of the bar."""
        self._say("starting torch")

    def wait(self, command: str) -> None:
        """Say which run must end first, in place of the bar."""
        self._say(f"waits for the run that another thread started to end: {command}")

    def update(self, final: bool = False) -> None:
        """Print what the ranks have printed since the last call, and redraw the bar."""
        parts = [*self._news()]
        for rank, log in self._logs:
            lines = text.capped(log.lines(final), str(log.path), *AT_ONCE)
            parts += self._labelled(rank, lines)
        self._print(parts)  # at once, because each call redraws the bar
        if self._reports is None and not final:
            self._say("running")
        elif self._progress.live.is_started:
            self._progress.refresh()

    def _say(self, doing: str) -> None:
        """Say what goes on and for how long, as long as no rank says how far it is."""
        now = time.monotonic()
        if self._console.is_interactive and now - self._redrawn >= PAUSE:
            self._redrawn = now
            words = f"{doing} · {text.duration(round(now - self._began))}"
            self._progress.update(self._bar, description=words)
            self._progress.start()
            self._progress.refresh()

    def fold(self) -> None:
        """Take the bar away."""
        self._progress.live.stop()

    def close(self, run: Run) -> None:
        """Print the rest, what the ranks wrote to stderr, their results and the outcome."""
        self.update(final=True)
        self.fold()
        for rank in run.ranks:
            log = str(rank.dir / "stderr.log")
            said = _stderr(rank, run, self._console.is_interactive)
            self._print(self._labelled(rank, text.capped(said, log, *AT_ONCE)))
        for rank in run.ranks:
            self._print(self._labelled(rank, self.results(rank)))
        self._print([Segment(text.headline(run) + "\n")])

    def results(self, rank: Rank) -> list[str]:
        """What is shown of a rank's reports when the run is over."""
        return text.results(rank.reports)

    def _labelled(self, rank: Rank, lines: list[str]) -> list[Segment]:
        """Lines of a rank, each with the rank before it, and broken at words."""
        if self._alone:
            return [Segment(f"{wrapped(line, 2)}\n") for line in lines]
        if not lines:
            return []  # before a rank has begun, its number is unknown
        label = f"[rank {rank.number}]"
        drawn = Segment(label, Style.parse(palette.terminal(rank.number)))
        fitting = (wrapped(f"{label} {line}", len(label) + 1) for line in lines)
        return [part for line in fitting for part in (drawn, Segment(f"{line[len(label) :]}\n"))]

    def _news(self) -> Iterator[Segment]:
        """Move the bar to the last report; say once which back end and device the ranks use.

        The bar follows the first rank that says how far it is: in a pipeline that is the last one.
        """
        for events in self._events:
            for event in events.new():
                data = event["data"]
                if event["kind"] == "group" and not self._joined:
                    self._joined = True
                    yield Segment(f"{data['backend']} · {data['device']}\n")
                elif event["kind"] == "report" and (share := text.share_done(data)) is not None:
                    self._reports = self._reports or events
                    if events is self._reports:
                        self._move(share, data)

    def _move(self, share: float, report: dict[str, Any]) -> None:
        seconds = time.monotonic() - self._began
        took = f"   {text.duration(round(seconds))}" * (seconds >= LONG)
        words = text.progress(report, self._console.width - BAR - 1 - len(took)) + took
        self._progress.update(self._bar, total=1, completed=share, description=words)
        if self._console.is_interactive:
            self._progress.start()

    def _print(self, segments: list[Segment]) -> None:
        """Print segments as they are: for text, rich would take time to wrap it."""
        if segments:
            self._console.print(Segments(segments))


def _stderr(rank: Rank, run: Run, card: bool) -> list[str]:
    """What a rank wrote to stderr: without its traceback if the run failed by another rank.

    Often many ranks fail in the same way: one traceback is enough. None is needed before a `card`,
    which says what was raised, on which line, and where the full traceback is.
    """
    said = text.lines(rank.stderr)
    blamed = run.verdict and run.verdict.rank
    told = card and run.verdict and run.verdict.kind == "raised"
    if blamed in (None, rank.number) and not told:
        return said
    return list(itertools.takewhile(lambda line: not line.startswith(TRACEBACK), said))
