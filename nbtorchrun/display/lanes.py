"""The lanes of a running launch: each rank's last lines and state, and the progress of the run."""

import html
import time
from collections import deque
from typing import Any

import psutil

from nbtorchrun import palette
from nbtorchrun.diagnosis.calls import Call, noted_calls
from nbtorchrun.display import text
from nbtorchrun.display.follow import Events, Tail
from nbtorchrun.runs import Rank

MARKS = {"starting": "○", "running": "▶", "waiting": "‖", "done": "✓", "failed": "✗"}
FEW = 4  # ranks that share the width of a page; more are shown in rows of equal lanes
CURVE = 300, 60  # width and height in pixels
POINTS = 150  # drawn of a curve, at most
LONG = 2  # seconds of waiting after which the lane shows how long the rank has waited


class Lane:
    """What one rank of a running launch has printed so far, and what it is doing.

    Attributes:
        state: starting, running, waiting, done or failed.
        words: the state as a student reads it: `waits in all_reduce #3`.
        lines: the last lines it printed.
        report: its last report of a step out of a total, or {}.
        losses: what it reported as `loss`.
    """

    def __init__(self, rank: Rank, lines: int):
        self.state = self.words = "starting"
        self.lines: deque[str] = deque(maxlen=lines)
        self.report: dict[str, Any] = {}
        self.losses: list[float] = []
        self.rank = rank
        self._stdout = Tail(rank.dir / "stdout.log")
        self._events = Events(rank.dir / "events.jsonl")
        self._end: dict[str, Any] = {}
        self._call: Call | None = None
        self._since = 0.0

    def update(self) -> None:
        """Read what the rank has written since the last update."""
        alive = self.rank.pid is None or psutil.pid_exists(self.rank.pid)
        self.lines.extend(map(text.shown, self._stdout.lines()[-self.lines.maxlen :]))
        for event in self._events.new():
            data = event["data"]
            if event["kind"] in ("end", "thread"):
                self._end = data
            elif event["kind"] == "report":
                if text.share_done(data) is not None:
                    self.report = data
                if text.can_be_drawn(data.get("loss")):
                    self.losses.append(data["loss"])
        self.state, self.words = self._what_it_does(alive)

    def _what_it_does(self, alive: bool) -> tuple[str, str]:
        if "type" in self._end:
            return "failed", f"raised {self._end['type']}"
        if self._end.get("status"):
            return "failed", f"exit status {self._end['status']}"
        if self._end:
            return "done", "done"
        if not alive:  # and could not say why
            return "failed", "ended"
        if not (self.rank.dir / "calls.txt").exists():
            return "starting", "starting"
        if waits := self._waits_in():
            seconds = time.monotonic() - self._since
            return "waiting", f"waits in {waits}" + (f" · {seconds:.0f} s" * (seconds >= LONG))
        return "running", "running"

    def _waits_in(self) -> Call | None:
        """The call that the rank was also in at the last update: a short call is no waiting."""
        calls = noted_calls(self.rank)
        call = calls[-1] if calls and not calls[-1].returned else None
        if call != self._call:
            self._call, self._since = call, time.monotonic()
            return None
        return call


def lines_for(ranks: int) -> int:
    """How many lines of each rank are shown: fewer if there are many ranks."""
    return 6 if ranks <= FEW else 3 if ranks <= 2 * FEW else 1


def draw(lanes: list[Lane], seconds: float) -> str:
    """The lanes as HTML, `seconds` after the run began; they grow with what the ranks print."""
    few = " course-few" if len(lanes) <= FEW else ""
    drawn = "".join(map(_lane, lanes))
    return (
        f'<div class="course-run{few}"><div class="course-lanes">{drawn}</div>'
        f'<div class="course-foot">{_progress(lanes, seconds)}{curve(lanes)}</div></div>'
    )


def starting(seconds: float) -> str:
    """What stands in place of the lanes as long as torch is being imported."""
    return (
        '<div class="course-run"><p>○ starting torch, once per notebook '
        f"<span>{seconds:.0f} s</span></p></div>"
    )


def waiting(command: str, seconds: float) -> str:
    """What stands in place of the lanes as long as another run is under way."""
    return (
        '<div class="course-run"><p>○ waits for the run that another thread started to end: '
        f"{html.escape(command)} <span>{seconds:.0f} s</span></p></div>"
    )


def line(words: str, lives: bool = False) -> str:
    """A run in one line."""
    classes = "course-run course-line" if lives else "course-line"
    return f'<div class="{classes}"><p>{html.escape(words)}</p></div>'


def _lane(lane: Lane) -> str:
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in lane.lines)
    return (
        f'<section class="course-lane" data-rank="{lane.rank.number}" data-state="{lane.state}" '
        f'style="--rank:{palette.colour(lane.rank.number)};--lines:{lane.lines.maxlen}">'
        f"<header><b>rank {lane.rank.number}</b> "
        f"<span>{MARKS[lane.state]} {html.escape(lane.words)}</span></header>"
        f"<pre>{lines}</pre></section>"
    )


def _progress(lanes: list[Lane], seconds: float) -> str:
    """The progress bar of the first rank that reports its progress, and the time.

    The bar is not shown before there is a report.
    """
    report = next((lane.report for lane in lanes if lane.report), None)
    percent = 100 * text.share_done(report) if report else 0
    caption = html.escape(text.progress(report)) if report else ""
    return (
        f'<div><div class="course-progress" role="progressbar" aria-valuenow="{percent:.0f}"'
        f"{'' if report else ' hidden'}>"
        f'<div style="width:{percent:.1f}%"></div></div>'
        f"<p><span>{caption}</span> <span>{seconds:.0f} s</span></p></div>"
    )


def curve(lanes: list[Lane]) -> str:
    """The losses over the reports, in the ranks' colours; '' until a rank has reported two.

    It can be read without `page.css` too: some pages take no style from an output.
    """
    curves = {lane.rank.number: lane.losses for lane in lanes if len(lane.losses) > 1}
    if not curves:
        return ""
    width, height = CURVE
    left, top, right, bottom = 52, 6, width - 2, height - 16
    low, high = min(map(min, curves.values())), max(map(max, curves.values()))
    across = (right - left) / (max(map(len, curves.values())) - 1)
    down = (bottom - top) / ((high - low) or 1)
    drawn = ""
    for number, losses in curves.items():
        points = " ".join(
            f"{left + across * place:.1f},{top + down * (high - losses[place]):.1f}"
            for place in _thinned(len(losses))
        )
        drawn += f'<polyline points="{points}" fill="none" stroke="{palette.colour(number)}"/>'
    return (
        f'<svg class="course-curve" width="{width}" height="{height}" font-size="11" '
        'fill="currentColor" stroke-width="1.8" stroke-linejoin="round" '
        'role="img" aria-label="loss">'
        '<g stroke="currentColor" stroke-width="1">'
        f'<line x1="{left}" y1="{top}" x2="{left}" y2="{bottom}"/>'
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/></g>{drawn}'
        f'<text x="{left - 4}" y="{top + 5}" text-anchor="end">{high:.3g}</text>'
        f'<text x="{left - 4}" y="{bottom + 2}" text-anchor="end">{low:.3g}</text>'
        f'<text x="{right}" y="{height - 2}" text-anchor="end">loss, report by report</text></svg>'
    )


def _thinned(count: int) -> list[int]:
    """At most `POINTS` places out of `count`, evenly spread, the first and the last among them."""
    drawn = min(count, POINTS)
    return [place * (count - 1) // (drawn - 1) for place in range(drawn)]
