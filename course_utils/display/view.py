"""Chooses how a run is shown: labelled lines in a terminal, lanes and a block in a notebook."""

import sys
import time
from typing import Any

from course_utils.display import lanes, page, text
from course_utils.display.lanes import Lane
from course_utils.launcher.options import Options
from course_utils.launcher.running import Screen
from course_utils.runs import Run

QUIET = 0.4  # seconds after which a run is long enough to show lanes
UPDATE = 0.25  # seconds between two updates of a page


class Notebook(Screen):
    """On an open page, shows lanes side by side during the run; then one block of plain text."""

    def __init__(self, run: Run, notice: str):
        if notice:
            print(notice, flush=True)
        self._lanes = [Lane(rank, lanes.lines_for(len(run.ranks))) for rank in run.ranks]
        self._watched = page.watched()
        self._start = 0.0
        self._next = 0.0
        self._shown: Any = None

    def update(self) -> None:
        """Redraw the lanes, a few times a second."""
        now = time.monotonic()
        if not self._start:  # not in __init__: the launcher may have to import torch first
            self._start, self._next = now, now + QUIET
        if not self._watched or now < self._next:
            return
        self._next = now + UPDATE
        for lane in self._lanes:
            lane.look()
        drawn = page.bundle(lanes.draw(self._lanes, now - self._start), "")
        from IPython.display import DisplayHandle

        if self._shown is None:
            self._shown = DisplayHandle()
            self._shown.display(drawn, raw=True)
        else:
            self._shown.update(drawn, raw=True)

    def fold(self) -> None:
        """Remove the lanes: an empty output takes no space, and nbval does not compare it."""
        if self._shown is not None:
            self._shown.update({}, raw=True)
            self._shown = None

    def close(self, run: Run) -> None:
        """Remove the lanes and print the block; what a good run wrote to stderr goes to stderr."""
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
