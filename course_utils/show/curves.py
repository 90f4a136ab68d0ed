"""Curves over steps and sizes."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.show import style

# The all-reduces have the same colours in every picture.
WAYS = ("naive", "tree", "recursive_doubling", "halving_doubling", "ring")
COLOURS = {name: number for number, name in enumerate(WAYS)}
RATIOS = [2.0**power for power in range(-3, 4)]
Curve = Sequence[float] | tuple[Sequence[float], Sequence[float]]
Points = tuple[Sequence[float], Sequence[float], Sequence[float]]


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


def costs(curves: Mapping[str, Points], *, title: str) -> None:
    """Draw seconds over bytes, predictions as lines and measurements as dots; below, the ratio.

    Args:
        curves: label to (sizes in bytes, seconds measured, seconds predicted).
    """
    above, below = style.panels(2, 1, 4.6, title, sharex=True, height_ratios=(3, 1.4))
    for number, (label, (sizes, measured, predicted)) in enumerate(curves.items()):
        colour = palette.colour(COLOURS.get(label, number))
        above.plot(sizes, [1e3 * s for s in predicted], color=colour, linewidth=1.3)
        above.plot(sizes, [1e3 * s for s in measured], "o", color=colour, label=label, ms=5)
        ratios = [m / p for m, p in zip(measured, predicted, strict=True)]
        below.plot(sizes, ratios, "o-", color=colour, ms=4, linewidth=0.8)
    for axes in (above, below):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
    below.axhline(1, color="black", linewidth=0.8)
    above.set_ylabel("milliseconds")
    above.legend(frameon=False, ncols=len(curves), title="line: predicted, dot: measured")
    below.set_ylabel("measured / predicted")
    below.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
    below.minorticks_off()
    largest = max(max(sizes) for sizes, _, _ in curves.values())
    ticks = [2**power for power in range(10, 28, 4) if 2**power <= largest]
    below.set_xticks(ticks, [f"{t >> 10} KiB" if t < 2**20 else f"{t >> 20} MiB" for t in ticks])
    below.set_xlabel("bytes on each rank")
    plt.show()
