"""Grids: small images with words, and products of matrices cut over ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette

UNIT = 0.13  # inches per row or column of a matrix
SIGN = 3.0  # the room for an operator, in columns
COLUMNS = 10  # of images
WHOLE = "#DDDDDD"  # of a matrix that every rank has


def pictures(
    images: Sequence[Any], words: Sequence[str], *, title: str, wrong: Sequence[bool] = ()
) -> None:
    """Draw images in rows of ten.

    Args:
        images: tensors (C, H, W) from 0 to 1, with C = 1 or 3.
        words: what stands under each image.
        wrong: whose words are in red.
    """
    rows = -(-len(images) // COLUMNS)
    every = style.panels(rows, COLUMNS, 0.4 + 1.05 * rows, title, bare=True)
    for number, (axes, image) in enumerate(zip(every, images, strict=False)):
        axes.imshow(image.permute(1, 2, 0).squeeze(-1), cmap="gray", vmin=0, vmax=1)
        red = number < len(wrong) and wrong[number]
        axes.set_title(words[number], y=-0.3, fontsize=9, color=palette.WRONG if red else "black")
    plt.show()


@dataclass(frozen=True)
class Matrix:
    """A matrix of a picture.

    Attributes:
        name: what it is called; with `cut`, the rank's number is added for each part.
        rows: its size from top to bottom.
        columns: its size from left to right.
        cut: "rows" or "columns": equal parts, one per rank; None: not cut.
        rank: whose it is, if only one rank has it.
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
        ranks: the number of parts of a matrix that is cut.

    Raises:
        ValueError: the ranks do not divide the size that is cut.
    """
    heights = [max(item.rows for item in line if isinstance(item, Matrix)) + 4 for line in lines]
    inches = 0.4 + UNIT * sum(heights)
    every = style.panels(len(lines), 1, inches, title, bare=True, height_ratios=heights)
    for axes, line, height in zip(every, lines, heights, strict=True):
        axes.set_xlim(0, style.WIDTH / UNIT)
        axes.set_ylim(height / 2, -height / 2)
        left = 1.0
        for item in line:
            if isinstance(item, str):
                style.centred(axes, left + SIGN / 2, 0, item, fontsize=12)
                left += SIGN
            else:
                _matrix(axes, item, left, ranks)
                left += item.columns
    plt.show()


def _matrix(axes: Axes, matrix: Matrix, left: float, ranks: int) -> None:
    """A matrix with its parts' names in it and its size below."""
    top = -matrix.rows / 2
    for name, x, y, width, height, colour in parts(matrix, ranks):
        style.box(axes, left + x, top + y, width, height, **palette.ground(colour))
        style.centred(axes, left + x + width / 2, top + y + height / 2, name)
    size = f"{matrix.rows} x {matrix.columns}"
    below = {"fontsize": 8, "color": style.GREY}
    style.centred(axes, left + matrix.columns / 2, matrix.rows / 2 + 1.2, size, **below)


def parts(matrix: Matrix, ranks: int) -> list[tuple[str, float, float, float, float, str]]:
    """Name, left, top, width, height and colour of each part of a matrix."""
    rows, columns = matrix.rows, matrix.columns
    if matrix.cut is None:
        colour = WHOLE if matrix.rank is None else palette.colour(matrix.rank)
        return [(matrix.name, 0, 0, columns, rows, colour)]
    size = rows if matrix.cut == "rows" else columns
    if size % ranks:
        raise ValueError(f"{matrix.name}: {ranks} ranks do not divide {size} {matrix.cut}")
    step, found = size // ranks, []
    for rank in range(ranks):
        start = rank * step
        place = (0, start, columns, step) if matrix.cut == "rows" else (start, 0, step, rows)
        found.append((f"{matrix.name}{rank}", *place, palette.colour(rank)))
    return found
