"""Products of matrices, cut over ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils import palette
from course_utils.show import style

UNIT = 0.13  # inches a row or column of a matrix
SIGN = 3.0  # rows or columns wide: the room for an operator
WHOLE = "#DDDDDD"  # of a matrix that every rank has


@dataclass(frozen=True)
class Matrix:
    """A matrix of a picture.

    Attributes:
        name: what it is called; with `cut`, each part is called by its rank as well.
        rows: its size from top to bottom.
        columns: its size from left to right.
        cut: "rows" or "columns": equal parts, one a rank; None: not cut.
        rank: whose it is, if it is one rank's alone.
    """

    name: str
    rows: int
    columns: int
    cut: str | None = None
    rank: int | None = None


def matrices(lines: Sequence[Sequence[Matrix | str]], *, ranks: int, title: str) -> None:
    """Draw lines of matrices and operators, each part in the colour of the rank that holds it.

    Args:
        lines: for example `[[Matrix("x", 2, 8), "@", Matrix("W", 8, 12, "columns"), "=", ...]]`.
        ranks: number of parts of a matrix that is cut.
        title: what the picture shows.

    Raises:
        ValueError: the ranks do not divide the size that is cut.
    """
    heights = [max(item.rows for item in line if isinstance(item, Matrix)) + 4 for line in lines]
    figure, all_axes = plt.subplots(
        len(lines),
        1,
        figsize=(style.WIDTH, 0.4 + UNIT * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes, line, height in zip(all_axes.flat, lines, heights, strict=True):
        axes.axis("off")
        axes.set_xlim(0, style.WIDTH / UNIT)
        axes.set_ylim(height / 2, -height / 2)
        _line(axes, line, ranks)
    plt.show()


def _line(axes: Axes, line: Sequence[Matrix | str], ranks: int) -> None:
    """One line, from left to right."""
    left = 1.0
    for item in line:
        if isinstance(item, str):
            axes.text(left + SIGN / 2, 0, item, ha="center", va="center", fontsize=12)
            left += SIGN
            continue
        for name, x, y, width, height, colour in parts(item, ranks):
            place = (left + x, y - item.rows / 2)
            axes.add_patch(Rectangle(place, width, height, facecolor=colour, edgecolor="white"))
            ink = "black" if colour == WHOLE else "white"
            middle = (place[0] + width / 2, place[1] + height / 2)
            axes.text(*middle, name, ha="center", va="center", color=ink, fontsize=9)
        label = f"{item.rows} x {item.columns}"
        below = item.rows / 2 + 1.2
        axes.text(
            left + item.columns / 2,
            below,
            label,
            ha="center",
            va="center",
            fontsize=8,
            color="#555555",
        )
        left += item.columns


def parts(matrix: Matrix, ranks: int) -> list[tuple[str, float, float, float, float, str]]:
    """The parts of a matrix: name, left, top, width, height and colour of each."""
    rows, columns = matrix.rows, matrix.columns
    if matrix.cut is None:
        colour = WHOLE if matrix.rank is None else palette.colour(matrix.rank)
        return [(matrix.name, 0, 0, columns, rows, colour)]
    size = rows if matrix.cut == "rows" else columns
    if size % ranks:
        raise ValueError(f"{matrix.name}: {ranks} ranks do not divide {size} {matrix.cut}")
    step = size // ranks
    found = []
    for rank in range(ranks):
        name, colour = f"{matrix.name}{rank}", palette.colour(rank)
        if matrix.cut == "rows":
            found.append((name, 0, rank * step, columns, step, colour))
        else:
            found.append((name, rank * step, 0, step, rows, colour))
    return found
