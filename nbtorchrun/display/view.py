"""Chooses how a run is shown: labelled lines in a terminal, lanes and a block in a notebook.

On an open page every run is seen: one with `show=False` as a line that counts its seconds.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from nbtorchrun.display import finished, lanes, page, printed, text
from nbtorchrun.display.lanes import Lane
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import Screen
from nbtorchrun.runs import Run

QUIET = 0.4  # seconds after which a run is long enough to show lanes
UPDATE = 0.25  # seconds between two updates of a page


class Live(Screen):
    """Shows a run on an open page in one output, which is drawn anew as long as the run lives."""

    def __init__(self, run: Run):
        self._run = run
        self._watched = page.watched()
        self._start = self._next = 0.0
        self._runs = False  # whether the ranks have been started
        self._shown: Any = None

    def prepare(self) -> None:
        """Say that torch is being imported: that takes seconds, and only once."""
        self._draw(lanes.starting)

    def wait(self, command: str) -> None:
        """Say which run of another thread must end first."""
        self._draw(lambda seconds: lanes.waiting(command, seconds))

    def update(self) -> None:
        """Draw the run anew, a few times a second."""
        if not self._runs:  # the run's own time begins when torch is there
            self._runs = True
            self._start = time.monotonic()
            self._next = 0.0 if self._shown else self._start + QUIET
        self._draw(self._drawn)

    def _drawn(self, seconds: float) -> str:
        """The living run as HTML, `seconds` after it began."""
        raise NotImplementedError

    def _draw(self, drawn: Callable[[float], str]) -> None:
        """Show what `drawn` makes of the seconds so far, if it is time for that."""
        now = time.monotonic()
        if not self._start:
            self._start, self._next = now, now + QUIET
        if self._watched and now >= self._next:
            self._next = now + UPDATE
            self._show(page.bundle(drawn(now - self._start), ""))

    def _show(self, bundle: dict[str, str]) -> None:
        """Show an output in place of the one before."""
        from IPython.display import DisplayHandle

        if self._shown is None:
            self._shown = DisplayHandle()
            self._shown.display(bundle, raw=True)
        else:
            self._shown.update(bundle, raw=True)

    def fold(self) -> None:
        """Remove the output: an empty one takes no space, and nbval does not compare it."""
        if self._shown is not None:
            self._shown.update({}, raw=True)
            self._shown = None


class Line(Live):
    """A run with `show=False` as one line; the runs of a cell share it."""

    _cell = ""  # whose line it is: the request that the page sent
    _handle: Any = None  # its output
    _count = 0  # of its runs so far

    def __init__(self, run: Run):
        super().__init__(run)
        if Line._cell != page.request():
            Line._cell, Line._handle, Line._count = page.request(), None, 0
        Line._count += 1
        self._shown = Line._handle
        self._before = f"run {Line._count} · " * (Line._count > 1)

    def _drawn(self, seconds: float) -> str:
        return lanes.line(f"{self._before}{text.ranks(self._run)} · {seconds:.0f} s", lives=True)

    def close(self, run: Run) -> None:
        """Leave the line of a good run, with its time; of another one the verdict tells more."""
        if run.ok:
            words = f"{self._before}{text.headline(run)} · {text.duration(run.seconds)}"
            self._show(page.bundle(lanes.line(words), ""))
        else:
            self.fold()
        Line._handle = self._shown


class Notebook(Live):
    """Shows lanes during the run and then a card on an open page; else a block of plain text."""

    def __init__(self, run: Run, notice: str):
        super().__init__(run)
        if notice:
            print(notice, flush=True)
        self._lanes = [Lane(rank, lanes.lines_for(len(run.ranks))) for rank in run.ranks]

    def _drawn(self, seconds: float) -> str:
        for lane in self._lanes:
            lane.update()
        return lanes.draw(self._lanes, seconds)

    def close(self, run: Run) -> None:
        """Leave a card on an open page and else the block; stderr of a good run goes to stderr.

        Of a run that failed, nothing is left on a page: the card of its verdict comes after it.
        """
        if self._watched and run.ok:
            for lane in self._lanes:
                lane.update()
            self._show(page.bundle(finished.card(run, self._lanes), text.block(run)))
        else:
            self.fold()
        if not self._watched:
            print(text.block(run), flush=True)
        if run.ok:
            for rank in run.ranks:
                for line in text.capped(text.lines(rank.stderr), str(rank.dir / "stderr.log")):
                    print(f"rank {rank.number} │ {line}", file=sys.stderr)


def screen_for(run: Run, options: Options) -> Screen:
    """The right screen for this process."""
    if page.in_notebook():
        if options.show:
            return Notebook(run, options.notice or run.note)
        return Line(run) if page.watched() else Screen()
    if not options.show:
        return Screen()
    from nbtorchrun.display.terminal import Terminal  # and with it rich

    return Terminal(run, options.notice or run.note, options.nproc * options.nnodes == 1)


def returned(run: Run, options: Options) -> None:
    """On an open page, show that a run failed whose verdict is not raised, but in `run.verdict`.

    With `show=False` its card waits until the cell prints the verdict.
    """
    if page.watched():
        printed.expect(run.verdict)
        if options.show:
            printed.show(run.verdict)
