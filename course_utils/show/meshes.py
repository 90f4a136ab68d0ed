"""Ranks on a mesh, as a cube."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes

from course_utils.show import style

AXIS = {"dp": "#332288", "pp": "#AA4499", "tp": "#117733"}  # no rank has these colours
Group = tuple[int, int]


def cube(
    mesh: Any,
    title: str,
    words: Callable[[str, list[Group]], str],
    width: Callable[[Group], float] = lambda group: 3,
) -> Axes:
    """Draw eight ranks, and a line for each group along each axis.

    Args:
        mesh: notebook 15's Mesh, of 2 x 2 x 1 x 2 ranks.
        title: of the picture.
        words: takes an axis and its groups, and returns what the legend says of them.
        width: takes a group, and returns how thick its line is, in points.
    """
    axes = style.axes(3.6, title, width=6.4)

    def spot(rank: int) -> tuple[float, float]:
        at = mesh.coordinate(rank)
        return 1.7 * at.tp + 0.9 * at.dp, -1.2 * at.pp + 0.62 * at.dp

    for axis, colour in AXIS.items():
        groups = [(one, other) for one, other in mesh.groups(axis)]
        axes.plot([], [], color=colour, lw=4, label=words(axis, groups))
        for group in groups:
            x, y = zip(*map(spot, group), strict=True)
            axes.plot(x, y, color=colour, lw=width(group))
    for rank in range(8):
        axes.plot(*spot(rank), "o", ms=24, color="#555555", mec="white")
        axes.text(*spot(rank), rank, color="white", ha="center", va="center", weight="bold")
    for stage, y in enumerate((0, -1.2)):
        axes.text(-0.35, y, f"stage {stage}", ha="right", va="center", color=style.GREY)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set(xlim=(-0.9, 3.0), ylim=(-1.6, 1.0))
    axes.axis("off")
    return axes
