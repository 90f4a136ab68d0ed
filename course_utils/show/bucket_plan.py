"""Which gradients travel together, for a cap on the size of a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils import palette
from course_utils.show import style
from course_utils.show.sliders import slider

if TYPE_CHECKING:  # torch takes two seconds to import, and not every notebook needs it
    from torch import Tensor

MIB = 2**20
CAPS = (1, 2, 5, 10, 15, 25, 50)  # MiB, on the slider
Cut = Callable[[float], "Sequence[Sequence[Tensor]]"]


def buckets(cut: Cut, caps: Sequence[float], *, title: str) -> None:
    """Draw the gradients of a model in the order in which they are ready, a colour for a bucket.

    In JupyterLab a slider goes from cap to cap; a row for each of `caps` is there in any view.

    Args:
        cut: for a cap in MiB the buckets of parameters, in the order in which they fill.
        caps: of the rows, in MiB.
        title: what the picture shows.
    """

    def one(cap: float) -> None:
        _draw(style.axes(1.5, "", ""), cut, [cap])
        plt.show()

    slider(one, cap={f"{cap} MiB": cap for cap in CAPS})
    _draw(style.axes(1.0 + 0.55 * len(caps), title, ""), cut, caps)
    plt.show()


def _draw(axes: Axes, cut: Cut, caps: Sequence[float]) -> None:
    """A row for each cap: a block for each bucket, with a line between two of its gradients."""
    for row, cap in enumerate(caps):
        left = 0.0
        for number, bucket in enumerate(cut(cap)):
            for parameter in bucket:
                width = parameter.nbytes / MIB
                look = {"color": palette.colour(number), "edgecolor": "white", "linewidth": 0.3}
                axes.barh(row, width, 0.7, left, **look)
                left += width
            axes.plot([left, left], [row - 0.35, row + 0.35], color="white", linewidth=2)
    counts = [len(cut(cap)) for cap in caps]
    labels = [
        f"cap {cap} MiB: {count} message" + ("s" if count != 1 else "")
        for cap, count in zip(caps, counts, strict=True)
    ]
    axes.set_yticks(range(len(caps)), labels)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("MiB of gradients, in the order in which backward computes them")
