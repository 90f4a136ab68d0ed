"""What the ranks did, over time."""

import math
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils import palette
from course_utils.runs import Run
from course_utils.show import style

MESSAGE = "message"
Mark = dict[str, Any]  # what `Run.timeline` returns: rank, name, start and end


def timeline(run: Run, *, title: str, start: float = 0.0, end: float | None = None) -> None:
    """Draw a lane for each rank with the blocks its script put between `mark(...)`.

    Args:
        run: a run whose ranks marked something.
        title: what the picture shows.
        start: where the picture begins, in seconds after the first mark.
        end: where it ends; None for the last mark.
    """
    last = math.inf if end is None else end
    marks = [mark for mark in run.timeline() if mark["end"] >= start and mark["start"] <= last]
    names = list(dict.fromkeys(mark["name"] for mark in marks))
    ranks = sorted({mark["rank"] for mark in marks})
    axes = _lanes(0.7 + 0.7 * max(1, len(ranks)), title, names)
    for mark in marks:
        place = (mark["rank"] - 0.35, 0.7)
        _block(axes, mark, start, place, facecolors=palette.colour(names.index(mark["name"])))
    style.rank_ticks(axes, ranks)
    axes.set_xlim(0, None if end is None else 1e3 * (end - start))
    plt.show()


def overlap(run: Run, *, title: str, rank: int = 0) -> None:
    """Draw what the rank did in each version of a step, with its messages below.

    Args:
        run: a run whose script marked `VERSION, step NUMBER: WHAT`; messages are called `message`.
            The fastest step of each version is drawn, from its first mark on.
        title: what the picture shows.
        rank: whose marks are drawn.
    """
    steps = quickest_steps([mark for mark in run.timeline() if mark["rank"] == rank])
    blocks = list(dict.fromkeys(_what(mark) for marks in steps.values() for mark in marks))
    blocks.sort(key=lambda block: block == MESSAGE)
    axes = _lanes(1.0 + 0.75 * len(steps), title, blocks)
    for row, marks in enumerate(steps.values()):
        origin = min(mark["start"] for mark in marks)
        for mark in marks:
            message = _what(mark) == MESSAGE
            _block(
                axes,
                mark,
                origin,
                (row + 0.08, 0.26) if message else (row - 0.34, 0.38),
                facecolors=palette.colour(blocks.index(_what(mark))),
                edgecolors="white",
                linewidth=0.4,
                alpha=0.75 if message else 1,  # messages overlap
            )
    axes.set_yticks(range(len(steps)), list(steps))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    plt.show()


def quickest_steps(marks: list[Mark]) -> dict[str, list[Mark]]:
    """The marks of the fastest step of each version."""
    steps: dict[str, dict[str, list[Mark]]] = {}
    for mark in marks:
        step = mark["name"].partition(": ")[0]
        steps.setdefault(step.partition(", step ")[0], {}).setdefault(step, []).append(mark)
    return {version: min(own.values(), key=_seconds) for version, own in steps.items()}


def _seconds(marks: list[Mark]) -> float:
    """From the start of the first mark to the end of the last one."""
    return max(mark["end"] for mark in marks) - min(mark["start"] for mark in marks)


def _what(mark: Mark) -> str:
    """What was marked: forward, backward, wait or message."""
    return mark["name"].partition(": ")[2]


def _lanes(height: float, title: str, names: list[str]) -> Axes:
    """Axes over time, with a legend below the title."""
    axes = style.axes(height, "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)
    style.legend_above(axes, names)
    return axes


def _block(axes: Axes, mark: Mark, origin: float, place: tuple[float, float], **look: Any) -> None:
    """A marked block; `origin` is the time at the left edge, `place` its top and height."""
    start, length = mark["start"] - origin, mark["end"] - mark["start"]
    axes.broken_barh([(1e3 * start, 1e3 * length)], place, **look)
