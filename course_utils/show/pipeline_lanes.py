"""When the ranks of a pipeline do what, and when they wait."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils import palette
from course_utils.show import style
from course_utils.show.style import slider

SHADES = {"F": 0.35, "B": 0.95, "W": 0.6}  # of the rank's colour
NAMES = {"F": "forward", "B": "backward", "W": "gradients of the weights"}
Spans = Iterable[tuple[int, Any, float, float]]  # rank, action as F3 or F3.1, start, end


def schedules(
    panels: Mapping[str, Spans],
    *,
    title: str,
    unit: str,
    slide: Mapping[int, Mapping[str, Spans]] | None = None,
) -> None:
    """Draw a lane of actions for each rank; it waits where the lane is white.

    Args:
        panels: what stands above each picture, and its spans: (rank, action, start, end). The
            action's text is its kind, F, B or W, and the number of the micro-batch, as F3; of a
            rank's second stage F3.1.
        title: what the pictures show.
        unit: what time is measured in.
        slide: the panels for other numbers of micro-batches; in JupyterLab a slider goes through
            them.
    """
    if slide:
        slider(lambda m: _draw(slide[m], title, unit), m={str(m): m for m in slide})
    _draw(panels, title, unit)


def _draw(panels: Mapping[str, Spans], title: str, unit: str) -> None:
    drawn = {name: [(r, str(a), s, e) for r, a, s, e in spans] for name, spans in panels.items()}
    ranks = [1 + max(span[0] for span in spans) for spans in drawn.values()]
    end = max(span[3] for spans in drawn.values() for span in spans)
    figure, every = plt.subplots(
        len(drawn),
        1,
        figsize=(style.WIDTH, 0.9 + sum(0.42 + 0.3 * count for count in ranks)),
        layout="constrained",
        squeeze=False,
        sharex=True,
        height_ratios=ranks,
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes, (name, spans), count in zip(every.flat, drawn.items(), ranks, strict=True):
        _lanes(axes, spans, count, end)
        axes.set_title(name, loc="left", fontsize=10)
    every.flat[-1].set_xlabel(unit)
    kinds = sorted(
        {action[0] for spans in drawn.values() for _, action, *_ in spans}, key="FBW".find
    )
    boxes = [plt.Rectangle((0, 0), 1, 1, facecolor="black", alpha=SHADES[kind]) for kind in kinds]
    names = [NAMES[kind] for kind in kinds]
    figure.legend(boxes, names, ncols=3, frameon=False, loc="outside lower right", fontsize=9)
    plt.show()


def _lanes(axes: Axes, spans: list[tuple[int, str, float, float]], ranks: int, end: float) -> None:
    """One schedule: its numbers are those of the micro-batches, with a prime on a second stage."""
    for rank, action, start, stop in spans:
        number, _, chunk = action[1:].partition(".")
        axes.broken_barh(
            [(start, stop - start)],
            (rank - 0.42, 0.84),
            facecolors=palette.colour(rank),
            alpha=SHADES[action[0]],
            edgecolor="white",
            linewidth=0.6,
        )
        if stop - start > end / 60:
            text = number + "\u2032" * int(chunk or 0)
            white = {"color": "white"} if action[0] == "B" else {}
            middle = (start + stop) / 2
            axes.text(middle, rank, text, ha="center", va="center", fontsize=7, **white)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)], fontsize=8)
    axes.set_ylim(ranks - 0.5, -0.5)
    axes.set_xlim(0, end)
    axes.spines[["top", "right"]].set_visible(False)
