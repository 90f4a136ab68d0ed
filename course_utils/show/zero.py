"""What each rank holds of a model's training state in each stage of ZeRO."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils import palette
from course_utils.show import style
from course_utils.show.sliders import slider

# Mixed precision with Adam: bytes a parameter, and the first stage that shards them.
STATE = {"param.": (2, 3), "grad.": (2, 2), "optimizer's state": (12, 1)}
STAGES = range(4)
MOST_RANKS = 8  # on the slider


def zero_stages(*, ranks: int, title: str) -> None:
    """Draw what every rank holds in stages 0 to 3: filled, of what all of them hold together.

    In JupyterLab sliders take other numbers of ranks, and one stage at a time; the four stages
    side by side are there in any view.

    Args:
        ranks: how many there are.
        title: what the picture shows.
    """

    def one(stage: int, ranks: int) -> None:
        _, axes = plt.subplots(figsize=(0.75 * style.WIDTH, 3.0), layout="constrained")
        _panel(axes, stage, ranks)
        plt.show()

    slider(
        one,
        stage={str(stage): stage for stage in STAGES},
        ranks={str(n): n for n in range(2, MOST_RANKS + 1)},
    )
    figure, every = plt.subplots(
        2, 2, figsize=(style.WIDTH, 1.8 + 0.5 * ranks), layout="constrained", sharex=True
    )
    figure.suptitle(title, x=0.01, ha="left")
    for stage, axes in zip(STAGES, every.flat, strict=True):
        _panel(axes, stage, ranks)
    for axes in every[0]:
        axes.set_xlabel("")
    plt.show()


def bytes_held(stage: int, ranks: int) -> float:
    """Bytes for each parameter of the model that one rank holds."""
    return sum(size / ranks if stage >= first else size for size, first in STATE.values())


def _panel(axes: Axes, stage: int, ranks: int) -> None:
    """One stage: a row for each rank, in its colour what it holds, hollow what others hold."""
    left = 0
    for name, (size, first) in STATE.items():
        axes.text(left + size / 2, -0.12, name, ha="center", fontsize=8)
        parts = ranks if stage >= first else 1
        for rank in range(ranks):
            start = left + size * (rank % parts) / parts
            axes.add_patch(Rectangle((left, rank + 0.12), size, 0.76, fill=False, ec="#BBBBBB"))
            look = {"facecolor": palette.colour(rank), "edgecolor": "white", "linewidth": 0.4}
            axes.add_patch(Rectangle((start, rank + 0.12), size / parts, 0.76, **look))
        left += size
    axes.set_xlim(0, left)
    axes.set_ylim(ranks, -0.6)
    axes.set_xticks(range(0, left + 1, 2))
    axes.set_yticks([rank + 0.5 for rank in range(ranks)], [f"rank {r}" for r in range(ranks)])
    axes.set_xlabel("bytes a parameter")
    axes.set_title(f"stage {stage}: {bytes_held(stage, ranks):g} bytes on each rank", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
