"""What is seen of a run: labelled lines in a terminal, lanes and then one block in a notebook."""

import html
import os
import sys
import time
from typing import Any

from course_utils import palette
from course_utils.launch import text
from course_utils.launch.follow import Progress, Tail
from course_utils.launch.options import Options
from course_utils.launch.run import Run
from course_utils.launch.terminal import Terminal

UPDATE = 0.25  # seconds between two updates of a notebook's lanes
LANE_LINES = 6


class Silent:
    """Shows nothing."""

    def update(self) -> None:
        """Nothing to do while the run lives."""

    def close(self, run: Run) -> None:
        """Nothing to do at its end."""


class Notebook:
    """Lanes side by side while the run lives, and one plain block when it is over."""

    def __init__(self, run: Run, notice: str):
        if notice:
            print(notice, flush=True)
        self._tails = [Tail(rank.dir / "stdout.log") for rank in run.ranks]
        self._lanes: list[list[str]] = [[] for _ in run.ranks]
        self._progress = Progress(run)
        self._next = time.monotonic() + 2 * UPDATE  # a short run shows only its block
        self._handle: Any = None
        # Under nbval and the like nobody sees an update, and it would be saved for ever.
        self._watched = (
            "PYTEST_CURRENT_TEST" not in os.environ and os.environ.get("COURSE_LIVE", "1") != "0"
        )

    def update(self) -> None:
        """Redraw the lanes, a few times a second."""
        if not self._watched or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + UPDATE
        for lane, tail in zip(self._lanes, self._tails, strict=True):
            lane[:] = [*lane, *map(text.shown, tail.lines()[-LANE_LINES:])][-LANE_LINES:]
        from IPython.display import display

        picture = {"text/html": self._html(), "text/plain": ""}
        if self._handle is None:
            self._handle = display(picture, raw=True, display_id=True)
        else:
            self._handle.update(picture, raw=True)

    def close(self, run: Run) -> None:
        """Fold the lanes away and print the block; what a good run wrote to stderr goes there."""
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
        print(text.block(run), flush=True)
        if run.ok:
            for rank in run.ranks:
                for line in text.capped(text.lines(rank.stderr), str(rank.dir / "stderr.log")):
                    print(f"rank {rank.number} │ {line}", file=sys.stderr)

    def _html(self) -> str:
        lanes = "".join(
            '<div style="flex:1;min-width:14em;border-left:4px solid '
            f'{palette.colour(number)};padding-left:.6em;overflow:hidden">'
            f'<b style="color:{palette.colour(number)}">rank {number}</b>'
            f'<pre style="margin:0;height:{LANE_LINES * 1.35:.1f}em">'
            f"{html.escape(chr(10).join(lane))}</pre></div>"
            for number, lane in enumerate(self._lanes)
        )
        bar = html.escape(self._progress.line())
        return f'<div style="display:flex;gap:1em">{lanes}</div><pre style="margin:0">{bar}</pre>'


def screen_for(run: Run, options: Options) -> Silent | Terminal | Notebook:
    """The screen that fits where this process runs."""
    if not options.show:
        return Silent()
    return Notebook(run, options.notice) if in_notebook() else Terminal(run, options.notice)


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return bool(shell) and hasattr(shell, "kernel")
