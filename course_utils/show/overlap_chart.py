"""When a rank computed, and when its messages were on their way."""

from typing import Any

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.runs import Run
from course_utils.show import style

MESSAGE = "message"
Mark = dict[str, Any]


def overlap(run: Run, *, title: str, rank: int = 0) -> None:
    """Draw for each version of a step what the rank did, and its messages below.

    Args:
        run: a run whose script marked `VERSION, step NUMBER: WHAT`; messages are called `message`.
            Of each version the quickest step is drawn, from its own first mark.
        title: what the picture shows.
        rank: whose marks are drawn.
    """
    steps = quickest_steps([each for each in run.timeline() if each["rank"] == rank])
    blocks = list(dict.fromkeys(what(each) for marks in steps.values() for each in marks))
    blocks.sort(key=lambda block: block == MESSAGE)
    axes = style.axes(1.0 + 0.75 * len(steps), "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)
    for row, marks in enumerate(steps.values()):
        origin = min(each["start"] for each in marks)
        for each in marks:
            message = what(each) == MESSAGE
            axes.broken_barh(
                [(1e3 * (each["start"] - origin), 1e3 * (each["end"] - each["start"]))],
                (row + 0.08, 0.26) if message else (row - 0.34, 0.38),
                facecolors=palette.colour(blocks.index(what(each))),
                edgecolors="white",
                linewidth=0.4,
                alpha=0.75 if message else 1,  # messages lie over one another
            )
    axes.set_yticks(range(len(steps)), list(steps))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    handles = [plt.Rectangle((0, 0), 1, 1, color=palette.colour(i)) for i in range(len(blocks))]
    axes.legend(handles, blocks, ncols=6, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    plt.show()


def quickest_steps(marks: list[Mark]) -> dict[str, list[Mark]]:
    """The marks of each version's quickest step, by version."""
    steps: dict[str, dict[str, list[Mark]]] = {}
    for each in marks:
        step = each["name"].partition(": ")[0]
        steps.setdefault(step.partition(", step ")[0], {}).setdefault(step, []).append(each)
    return {version: min(own.values(), key=seconds) for version, own in steps.items()}


def seconds(marks: list[Mark]) -> float:
    """From the first mark's start to the last one's end."""
    return max(each["end"] for each in marks) - min(each["start"] for each in marks)


def what(mark: Mark) -> str:
    """What the mark is of: forward, backward, wait or message."""
    return mark["name"].partition(": ")[2]
