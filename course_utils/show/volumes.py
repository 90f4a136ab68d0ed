"""Bytes of the tensors on a rank, and of each stage of ZeRO."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette

MOST_RANKS = 8  # on the slider
# Mixed precision with Adam: bytes per parameter, and the first stage of ZeRO that shards them.
STATE = {"param.": (2, 3), "grad.": (2, 2), "optimizer's state": (12, 1)}
KINDS = ("parameters", "gradients", "optimizer")  # what the palette calls them
STAGES = range(4)
SHADES = ("#000000", "#555555", "#888888", "#AAAAAA")  # of the stages: no kind's, no rank's colour
GPUS = tuple(2**power for power in range(11))  # 1 to 1024, on the slider and the axis


def zero_stages(*, ranks: int, title: str) -> None:
    """Draw what every rank holds in stages 0 to 3 of ZeRO: filled, out of what all of them hold.

    In JupyterLab sliders choose the stage and the number of ranks; the four stages side by side
    are visible everywhere.
    """

    def one(stage: int, ranks: int) -> None:
        _stage(style.axes(3.0, "", width=0.75 * style.WIDTH), stage, ranks)
        plt.show()

    numbers = {str(n): n for n in range(2, MOST_RANKS + 1)}
    style.slider(one, stage={str(stage): stage for stage in STAGES}, ranks=numbers)
    every = style.panels(2, 2, 1.8 + 0.5 * ranks, title, sharex=True)
    for stage, axes in zip(STAGES, every, strict=True):
        _stage(axes, stage, ranks)
    for axes in every[:2]:
        axes.set_xlabel("")
    plt.show()


def _stage(axes: Axes, stage: int, ranks: int) -> None:
    """One stage: a row for each rank, filled with what it holds itself."""
    left, held = 0, 0.0
    for name, (size, first) in STATE.items():
        style.centred(axes, left + size / 2, -0.12, name, va="baseline", fontsize=8)
        parts = ranks if stage >= first else 1
        for rank in range(ranks):
            start = left + size * (rank % parts) / parts
            style.box(axes, left, rank + 0.12, size, 0.76, fill=False, ec="#BBBBBB")
            look = {"facecolor": palette.colour(rank), "edgecolor": "white", "linewidth": 0.4}
            style.box(axes, start, rank + 0.12, size / parts, 0.76, **look)
        held += size / parts
        left += size
    style.rank_ticks(axes, range(ranks), offset=0.5)
    axes.set_xlim(0, left)
    axes.set_ylim(ranks, -0.6)
    axes.set_xticks(range(0, left + 1, 2))
    axes.set_xlabel("bytes per parameter")
    axes.set_title(f"stage {stage}: {held:g} bytes on each rank", loc="left")


def memory_per_gpu(models: Mapping[str, int], *, limit: float, title: str) -> None:
    """Draw the GB that training needs on each GPU over the number of GPUs, by formula.

    A line for each stage of ZeRO, with its name at its end, and a panel for each model, both axes
    logarithmic. In JupyterLab sliders choose the model, the number of GPUs and the stage.

    Args:
        models: name to the number of parameters.
        limit: the memory of one GPU in GB, drawn as a dashed line.
    """

    def one(model: str, gpus: int, stage: int) -> None:
        _one_gpu(style.axes(1.7, ""), model, models[model], gpus, stage, limit)
        plt.show()

    counts = {str(n): n for n in GPUS}
    names = {name: name for name in models}
    style.slider(one, model=names, gpus=counts, stage={str(stage): stage for stage in STAGES})
    every = style.panels(1, len(models), 3.6, title, sharey=True)
    for axes, (name, parameters) in zip(every, models.items(), strict=True):
        for stage in STAGES:
            values = [sum(_gigabytes(parameters, stage, n)) for n in GPUS]
            look = {"color": SHADES[stage], "linewidth": 1.8, "marker": "osD^"[stage]}
            axes.plot(GPUS, values, markersize=4, **look)
            end = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(f"stage {stage}", (GPUS[-1], values[-1]), fontsize=9, **end)
        axes.axhline(limit, color=style.GREY, linestyle="--", linewidth=1)
        axes.annotate(f"{limit:g} GB", (GPUS[-1], limit), (0, -12), textcoords="offset points")
        axes.texts[-1].set(ha="right", color=style.GREY, fontsize=9)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(GPUS[::2], [str(n) for n in GPUS[::2]])
        axes.set_title(f"{name} parameters", loc="left", fontsize=10)
        axes.set_xlabel("GPUs (log)")
        axes.grid(axis="y", alpha=0.25)
    every[0].set_ylabel("GB per GPU (log)")
    every[0].yaxis.set_major_formatter("{x:g}")
    plt.show()


def _gigabytes(parameters: int, stage: int, ranks: int) -> list[float]:
    """GB of parameters, gradients and optimizer's state on one of `ranks`."""
    sizes = STATE.values()
    return [parameters * b / (ranks if stage >= first else 1) / 1e9 for b, first in sizes]


def _one_gpu(axes: Axes, model: str, parameters: int, gpus: int, stage: int, limit: float) -> None:
    """One bar: what fills a GPU, up to twice its memory."""
    left = 0.0
    sizes = _gigabytes(parameters, stage, gpus)
    for kind, name, size in zip(KINDS, STATE, sizes, strict=True):
        axes.barh(0, size, 0.6, left, **palette.ground(palette.MEMORY[kind]))
        if 16 < size < 2 * limit - left:  # wide enough for its name
            style.centred(axes, left + size / 2, 0, name)
        left += size
    axes.axvline(limit, color=style.GREY, linestyle="--", linewidth=1)
    axes.set_xlim(0, 2 * limit)
    axes.set_yticks([])
    axes.set_xlabel(f"GB on each GPU (dashed: {limit:g} GB)")
    room = f"{limit - left:.0f} GB left for activations" if left < limit else "does not fit"
    axes.set_title(f"{model}, stage {stage}, {gpus} GPUs: {left:.0f} GB, {room}", loc="left")
