"""Small images, with a few words under each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from course_utils.show import style

if TYPE_CHECKING:  # torch takes two seconds to import, and not every notebook needs it
    from torch import Tensor


def pictures(
    images: Sequence[Tensor],
    words: Sequence[str],
    *,
    title: str,
    wrong: Sequence[bool] = (),
    columns: int = 10,
) -> None:
    """Draw images side by side.

    Args:
        images: each (C, H, W) from 0 to 1, with C = 1 or 3.
        words: what stands under each.
        title: what the picture shows.
        wrong: whose words are in red.
        columns: how many in a row.
    """
    rows = -(-len(images) // columns)
    figure, every = plt.subplots(
        rows,
        columns,
        figsize=(style.WIDTH, 0.4 + 1.05 * rows),
        layout="constrained",
        squeeze=False,
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes in every.flat:
        axes.axis("off")
    for number, (axes, image) in enumerate(zip(every.flat, images, strict=False)):
        axes.imshow(image.permute(1, 2, 0).squeeze(-1), cmap="gray", vmin=0, vmax=1)
        red = number < len(wrong) and wrong[number]
        axes.set_title(words[number], y=-0.3, fontsize=9, color="#D55E00" if red else "black")
    plt.show()
