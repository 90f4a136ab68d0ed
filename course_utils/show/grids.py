"""Rows of small images with words."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt

from course_utils.show import style
from nbtorchrun import palette

COLUMNS = 10  # of images


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
