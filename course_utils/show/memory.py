"""What the tensors of a rank hold, operation by operation."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.show import style

History = Mapping[str, Sequence[float]]


def bytes_alive(steps: Mapping[str, tuple[History, int]], *, title: str) -> None:
    """Draw a panel for each way to train: the bytes of each kind over one step, stacked.

    Args:
        steps: label to (bytes for each parameter by kind, a number for each operation; the
            operation with which backward ended).
        title: what the picture shows.
    """
    figure, every = plt.subplots(
        1,
        len(steps),
        figsize=(style.WIDTH, 3.4),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes, (label, (history, backward_ends)) in zip(every.flat, steps.items(), strict=True):
        length = len(next(iter(history.values())))
        axes.stackplot(
            range(length),
            *history.values(),
            labels=list(history),
            colors=[palette.colour(number) for number in range(len(history))],
            step="post",
        )
        axes.axvline(backward_ends, color="black", linewidth=0.8, linestyle=":")
        axes.set_title(label, loc="left", fontsize=10)
        axes.set_xlim(0, length - 1)
        axes.set_xlabel("operation")
        axes.spines[["top", "right"]].set_visible(False)
    every.flat[0].set_ylabel("bytes a parameter")
    figure.legend(
        *every.flat[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    plt.show()
