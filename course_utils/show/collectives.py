"""Who has what before and after a collective."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils import palette
from course_utils.display.text import number
from course_utils.runs import Run
from course_utils.show import style

Held = Mapping[int, Sequence[float]]  # rank -> its numbers

CELL, ROW = 0.86, 0.78  # of a place's width and height: what a box fills
NAMES, ARROW = 1.6, 3.0  # places for the ranks' names and for the arrow
PLACES = (10.0, 16.0)  # across a column: where two stand side by side, and where one stands alone


def collective(run: Run, *, title: str) -> None:
    """Draw, for each collective that the ranks of `run` reported, who had what and who has what.

    A number has the colour of the rank that had it before; one that no rank had before is drawn
    as made from all ranks, with a stripe of each one's colour.

    Args:
        run: its ranks called `report(collective=NAME, before=[...], after=[...])`, lists of
            numbers, `[]` for nothing. What the ranks have before should differ from rank to rank.
        title: what the picture shows.

    Raises:
        ValueError: no rank reported a collective.
    """
    found = [report for report in run.reports if "collective" in report]
    names = list(dict.fromkeys(report["collective"] for report in found))
    if not names:
        raise ValueError(
            "no rank reported a collective: "
            'call report(collective="broadcast", before=[...], after=[...]) on every rank'
        )
    held = {
        (name, when): {each["rank"]: each[when] for each in found if each["collective"] == name}
        for name in names
        for when in ("before", "after")
    }
    needed = max(_places(held[name, "before"], held[name, "after"]) for name in names)
    columns = 2 if len(names) > 1 and needed <= PLACES[0] else 1
    rows = -(-len(names) // columns)
    figure, every = plt.subplots(
        rows,
        columns,
        figsize=(style.WIDTH, 0.4 + rows * (0.45 + 0.3 * len(run.ranks))),
        layout="constrained",
        squeeze=False,
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes in every.flat:
        axes.axis("off")
        axes.set_xlim(0, max(needed, PLACES[columns == 1]))
    for axes, name in zip(every.flat, names, strict=False):
        _draw(axes, name, len(run.ranks), held[name, "before"], held[name, "after"])
    plt.show()


def origins(before: Held) -> dict[float, int]:
    """Which rank had each number; the first one where several had it."""
    found: dict[float, int] = {}
    for rank in sorted(before):
        for value in before[rank]:
            found.setdefault(value, rank)
    return found


def _widest(held: Held) -> int:
    """The length of the longest list that a rank holds."""
    return max((len(numbers) for numbers in held.values()), default=0)


def _places(before: Held, after: Held) -> float:
    """How wide one collective is."""
    return NAMES + _widest(before) + ARROW + _widest(after)


def _draw(axes: Axes, name: str, ranks: int, before: Held, after: Held) -> None:
    """One collective: a row for each rank, what it had on the left, what it has on the right."""
    width = _widest(before)
    right = NAMES + width + ARROW
    axes.set_ylim(ranks, -0.75)
    came_from = origins(before)
    for rank in range(ranks):
        axes.text(0, rank + 0.5, f"rank {rank}", va="center", color=palette.colour(rank))
        _boxes(axes, NAMES, rank, before.get(rank, ()), came_from, ranks)
        _boxes(axes, right, rank, after.get(rank, ()), came_from, ranks)
    axes.text(NAMES, -0.3, "before", va="center", color="#555555")
    axes.text(right, -0.3, "after", va="center", color="#555555")
    middle = NAMES + width + ARROW / 2
    axes.annotate(
        "",
        xy=(middle + ARROW / 2 - 0.3, ranks / 2),
        xytext=(middle - ARROW / 2 + 0.1, ranks / 2),
        arrowprops={"arrowstyle": "-|>", "color": "#555555"},
    )
    axes.text(middle, ranks / 2 - 0.12, name, ha="center", va="bottom", fontsize=9)


def _boxes(
    axes: Axes,
    left: float,
    row: int,
    held: Sequence[float],
    came_from: dict[float, int],
    ranks: int,
) -> None:
    """The numbers one rank holds, side by side; an empty frame for none."""
    if not held:
        axes.add_patch(_box(left, row, fill=False, edgecolor="#BBBBBB", linestyle=":"))
    for place, value in enumerate(held):
        x = left + place
        if value in came_from:
            axes.add_patch(_box(x, row, facecolor=palette.colour(came_from[value])))
        else:
            axes.add_patch(_box(x, row, facecolor="white", edgecolor="#555555"))
            for rank in range(ranks):
                axes.add_patch(
                    Rectangle(
                        (x + CELL * rank / ranks, row + ROW - 0.14),
                        CELL / ranks,
                        0.14,
                        facecolor=palette.colour(rank),
                    )
                )
        colour = "white" if value in came_from else "black"
        axes.text(
            x + CELL / 2,
            row + ROW / 2 + (0 if value in came_from else -0.06),
            number(float(value)),
            ha="center",
            va="center",
            color=colour,
            fontsize=9,
        )


def _box(x: float, row: int, **look: object) -> Rectangle:
    return Rectangle((x, row), CELL, ROW, **look)
