"""Chooses how a run is shown: labelled lines in a terminal, lanes and a block in a notebook."""

import sys
import time
from collections.abc import Callable
from typing import Any

from course_utils.display import finished, lanes, page, text
from course_utils.display.lanes import Lane
from course_utils.launcher.options import Options
from course_utils.launcher.running import Screen
from course_utils.runs import Run

QUIET = 0.4  # seconds after which a run is long enough to show lanes
UPDATE = 0.25  # seconds between two updates of a page


class Notebook(Screen):
    """Shows lanes during the run and then a card on an open page; else a block of plain text."""

    def __init__(self, run: Run, notice: str):
        if notice:
            print(notice, flush=True)
        self._lanes = [Lane(rank, lanes.lines_for(len(run.ranks))) for rank in run.ranks]
        self._watched = page.watched()
        self._start = self._next = 0.0
        self._runs = False  # whether the ranks have been started
        self._shown: Any = None

    def prepare(self) -> None:
        """Say that torch is being imported: that takes seconds, and only once."""
        self._draw(lanes.starting)

    def update(self) -> None:
        """Redraw the lanes, a few times a second."""
        if not self._runs:  # the run's own time begins when torch is there
            self._runs = True
            self._start = time.monotonic()
            self._next = 0.0 if self._shown else self._start + QUIET
        self._draw(self._drawn_lanes)

    def _drawn_lanes(self, seconds: float) -> str:
        for lane in self._lanes:
            lane.update()
        return lanes.draw(self._lanes, seconds)

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
        """Remove the lanes: an empty output takes no space, and nbval does not compare it."""
        if self._shown is not None:
            self._shown.update({}, raw=True)
            self._shown = None

    def close(self, run: Run) -> None:
        """Leave a card on an open page and else the block; stderr of a good run goes to stderr.

        A run that failed leaves the block on a page too: the card of its verdict comes after it.
        """
        if self._watched and run.ok:
            for lane in self._lanes:
                lane.update()
            self._show(page.bundle(finished.card(run, self._lanes), text.block(run)))
        else:
            self.fold()
            print(text.block(run), flush=True)
        if run.ok:
            for rank in run.ranks:
                for line in text.capped(text.lines(rank.stderr), str(rank.dir / "stderr.log")):
                    print(f"rank {rank.number} │ {line}", file=sys.stderr)


def screen_for(run: Run, options: Options) -> Screen:
    """The right screen for this process."""
    if not options.show:
        return Screen()
    if page.in_notebook():
        return Notebook(run, options.notice or run.note)
    from course_utils.display.terminal import Terminal  # and with it rich

    return Terminal(run, options.notice or run.note)
