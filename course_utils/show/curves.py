"""Curves over steps."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from course_utils.show import style
from nbtorchrun import palette

Curve = Sequence[float] | tuple[Sequence[float], Sequence[float]]


def series(curves: Mapping[str, Curve], *, title: str, x: str, y: str) -> None:
    """Draw labelled curves over a common axis.

    Args:
        curves: label to values, or to a pair (positions, values).
        x, y: the names of the axes, with their units.
    """
    axes = style.axes(3.2, title, x, y)
    for number, (label, curve) in enumerate(curves.items()):
        positions, values = curve if isinstance(curve, tuple) else (range(len(curve)), curve)
        axes.plot(positions, values, label=label, color=palette.colour(number), linewidth=1.6)
    if len(curves) > 1:
        axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.25)
    plt.show()
