"""What was predicted and what was measured, over sizes."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.show import style

COLOURS = {name: n for n, name in enumerate(("naive", "tree", "halving_doubling", "ring"))}
RATIOS = [2.0**power for power in range(-3, 4)]
Points = tuple[Sequence[float], Sequence[float], Sequence[float]]


def costs(curves: Mapping[str, Points], *, title: str) -> None:
    """Draw seconds over bytes, predictions as lines and measurements as dots; below, the ratio.

    Args:
        curves: label to (sizes in bytes, seconds measured, seconds predicted).
        title: what the picture shows.
    """
    figure, (above, below) = plt.subplots(
        2,
        1,
        figsize=(style.WIDTH, 4.6),
        layout="constrained",
        sharex=True,
        height_ratios=(3, 1.4),
    )
    figure.suptitle(title, x=0.01, ha="left")
    for number, (label, (sizes, measured, predicted)) in enumerate(curves.items()):
        colour = palette.colour(COLOURS.get(label, number))  # the same in every picture
        above.plot(sizes, [1e3 * s for s in predicted], color=colour, linewidth=1.3)
        above.plot(sizes, [1e3 * s for s in measured], "o", color=colour, label=label, ms=5)
        ratios = [m / p for m, p in zip(measured, predicted, strict=True)]
        below.plot(sizes, ratios, "o-", color=colour, ms=4, linewidth=0.8)
    for axes in (above, below):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
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
