"""The pictures of notebook 05."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from course_utils.show import style
from nbtorchrun import palette
from nbtorchrun.runs import Run

History = Mapping[str, Sequence[float]]
NAMES = {  # the order of the stack, from the bottom, and the words of the legend
    "optimizer": "optimizer's state",
    "parameters": "parameters",
    "gathered": "gathered parameters",
    "gradients": "gradients",
    "activations": "activations",
    "other": "temporary",
}
LOOK = {  # of what a rank does; messages of two kinds have one colour
    "forward": {"facecolor": palette.ACTIVITY["forward"]},
    "backward": {"facecolor": palette.ACTIVITY["backward"]},
    "all-gather": {"facecolor": palette.ACTIVITY["message"]},
    "reduce-scatter": {"facecolor": palette.ACTIVITY["message"], "hatch": "////"},
}
HELD = 0.85  # of a kind's colour, in parts that a rank holds
SEEN = 0.02  # of the largest kind: less is too thin to see
PHASES = ("forward", "backward", "step")
PARTS = {  # of two lanes: what the GPU does, and what the link does
    "the GPU computes a layer": {
        "facecolor": palette.ground(palette.ACTIVITY["forward"])["facecolor"],
        "edgecolor": palette.outline(palette.ACTIVITY["forward"]),
    },
    "the GPU waits": {
        "facecolor": palette.ACTIVITY["wait"],
        "edgecolor": "#888888",
        "hatch": "////",
    },
    "the link gathers a layer": {
        "facecolor": palette.ground(palette.ACTIVITY["message"])["facecolor"],
        "edgecolor": palette.outline(palette.ACTIVITY["message"]),
    },
}
ARROW = {"arrowstyle": "->", "color": palette.NEUTRAL}
LINE = {"color": style.GREY, "linewidth": 1, "linestyle": "--"}


def memory(
    steps: Mapping[str, Mapping[str, Any]],
    *,
    title: str,
    y: str,
    limit: tuple[float, str] | None = None,
    turns: bool = False,
    notes: Mapping[str, Sequence[tuple[str, float, float]]] | None = None,
) -> None:
    """Draw what is alive during a step, stacked by kind; a panel for each way to train.

    Args:
        steps: label to a step, as `BytesAlive.per` reports it: its `history`, bytes by kind with a
            number for each operation, and its `turns`, the operations at which phases begin.
        y: the vertical axis's name, with its unit.
        limit: how much fits, and what to call it.
        turns: write how much is alive where a phase ends and the next one begins.
        notes: label to what to write into its panel, each with its place: the phase, counted from
            0, and the height.
    """
    rows = -(-len(steps) // 3)  # up to three side by side
    columns = -(-len(steps) // rows)
    every = style.panels(rows, columns, 0.7 + 2.9 * rows, title, sharey=True)
    most = {kind: max(max(step["history"][kind]) for step in steps.values()) for kind in NAMES}
    used = [kind for kind in NAMES if most[kind] > SEEN * max(most.values())]
    for axes, (label, step) in zip(every, steps.items(), strict=True):
        history = {kind: step["history"][kind] for kind in used}
        _stack(axes, history, step["turns"])
        peak = max(map(sum, zip(*step["history"].values(), strict=True)))
        axes.set_title(f"{label}: at most {peak:.3g}", loc="left", fontsize=10)
        axes.set_xlabel("operations, in order")
        if turns:
            axes.yaxis.set_major_locator(MultipleLocator(20 if limit else 2))
            alive = [sum(now) for now in zip(*step["history"].values(), strict=True)]
            for phase, turn in enumerate(step["turns"], start=1):
                _number(axes, phase, alive[turn - 1], under=limit is not None)
        for words, phase, height in (notes or {}).get(label, ()):
            style.centred(axes, phase, height, words, fontsize=8)
        if limit:
            axes.axhline(limit[0], **LINE)
            place = {"xytext": (3, 4), "textcoords": "offset points", "va": "bottom"}
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.annotate(limit[1], (0, limit[0]), fontsize=8, bbox=ground, **place)
    for axes in every[::columns]:
        axes.set_ylabel(y)
    every[0].set_ylim(top=1.12 * every[0].get_ylim()[1])  # room for the phases' names
    patches = [Patch(color=palette.MEMORY[kind], label=NAMES[kind]) for kind in reversed(used)]
    every[0].figure.legend(handles=patches, loc="outside lower center", ncols=5, frameon=False)
    plt.show()


def _stack(axes: Axes, history: History, turns: Sequence[int]) -> None:
    """One step, with its phases named above; each phase has the same width in every panel."""
    edges = [0, *turns, len(next(iter(history.values())))]
    places = [
        phase + (operation - start) / (end - start)
        for phase, (start, end) in enumerate(pairwise(edges))
        for operation in range(start, end)
    ]
    places.append(len(edges) - 1)  # the last operation's bytes stay until the end
    values = [[*each, each[-1]] for each in history.values()]
    colours = [palette.MEMORY[kind] for kind in history]
    axes.stackplot(places, *values, colors=colours, step="post", linewidth=0)
    for phase, name in zip(range(len(edges) - 1), PHASES, strict=False):
        if phase:
            axes.axvline(phase, color="black", linewidth=0.8, linestyle=":")
        place = {"xy": (phase + 0.5, 1), "xycoords": ("data", "axes fraction")}
        look = {"ha": "center", "va": "top", "fontsize": 8, "color": style.GREY}
        axes.annotate(name, xytext=(0, -2), textcoords="offset points", **place, **look)
    axes.set_xlim(0, len(edges) - 1)
    axes.set_xticks([])


def _number(axes: Axes, x: float, height: float, under: bool = False) -> None:
    """Write a height above its place, or under it where a line may be above."""
    look = {"ha": "center", "va": "top" if under else "bottom", "fontsize": 10}
    look["fontweight"] = "bold"
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.annotate(
        f"{height:.1f}", (x, height), (0, -6 if under else 6), textcoords="offset points", **look
    )


def flat_layer(*, ranks: int, title: str) -> None:
    """Draw how a layer's parameters become a flat tensor, its shards, and views into it."""
    sizes = {"weight (2, 3)": 6, "bias (2)": 2}
    length = sum(sizes.values())
    padding = -length % ranks
    share = (length + padding) // ranks
    axes = style.axes(3.1, title)
    axes.axis("off")
    start, words = 0, []
    for name, size in sizes.items():
        columns = 3 if size == 6 else size
        left = 0.6 if size == 6 else 6.2
        for value in range(size):
            row, column = divmod(value, columns)
            words.append(f"{name[0]}{value}")
            _cell(axes, left + column, 0.55 * row, words[-1], palette.MEMORY["parameters"])
        style.centred(axes, left + columns / 2, -0.3, name)
        bottom = 0.55 * -(-size // columns)
        arrow = {"arrowstyle": "<->", "color": palette.NEUTRAL}
        ends = start + 0.06, start + size - 0.06  # a bracket over the parameter's values
        axes.plot([ends[0], *ends, ends[1]], [2.56, 2.46, 2.46, 2.56], color=palette.NEUTRAL)
        axes.annotate("", (left + columns / 2, bottom), (start + size / 2, 2.46), arrowprops=arrow)
        start += size
    style.centred(axes, 4.6, 2.1, "views", color=palette.NEUTRAL)
    for value in range(length + padding):
        colour = palette.MEMORY["parameters" if value < length else "other"]
        _cell(axes, value, 2.6, words[value] if value < length else "0", colour)
    style.centred(axes, length + padding + 0.2, 2.88, "flat tensor", ha="left")
    if padding:
        style.centred(axes, length + padding / 2, 2.42, "padding", fontsize=8)
    for rank in range(ranks):
        colour = palette.colour(rank)
        look = palette.ground(colour)
        style.box(axes, rank * share + 0.06, 3.5, share - 0.12, 0.6, **look)
        style.centred(axes, (rank + 0.5) * share, 3.8, f"rank {rank}'s shard")
        for edge in (rank * share + 0.06, (rank + 1) * share - 0.06):
            axes.plot([edge, edge], [3.2, 3.5], color=colour, linewidth=1)
    axes.set_xlim(-0.3, length + padding + 1.3)
    axes.set_ylim(4.3, -0.7)
    plt.show()


def _cell(axes: Axes, left: float, top: float, words: str, colour: str) -> None:
    style.box(axes, left, top, 1, 0.55, **palette.ground(colour))
    style.centred(axes, left + 0.5, top + 0.28, words, fontsize=8)


def two_halves(*, ranks: int, title: str) -> None:
    """Draw one layer's step with DDP and in stage 1: both send two messages."""
    gradient, parameter = palette.MEMORY["gradients"], palette.MEMORY["parameters"]
    first, last = ("each rank's\ngradient", gradient, True), ("new\nparameters", parameter, True)
    shard = ("a shard of\nthe average", gradient, False)
    states = {
        "DDP": (first, shard, ("the whole\naverage", gradient, True), last),
        "stage 1": (first, shard, ("a shard of new\nparameters", parameter, False), last),
    }
    message = {"facecolor": "none", "edgecolor": palette.outline(palette.ACTIVITY["message"])}
    steps = {
        "DDP": ("reduce-\nscatter", "all-\ngather", "update\nall"),
        "stage 1": ("reduce-\nscatter", "update\nthe shard", "all-\ngather"),
    }
    axes = style.axes(4.3, title)
    axes.axis("off")
    wide, far, high = 1.5, 3.1, 2.9
    for row, (way, columns) in enumerate(states.items()):
        top = row * high
        for column, (name, colour, whole) in enumerate(columns):
            left = column * far
            style.centred(axes, left + wide / 2, top - 0.12, name, va="bottom")
            for rank in range(ranks):
                for part in range(ranks):
                    filled = palette.ground(colour, 0.75) if whole or part == rank else {}
                    look = {"facecolor": "none", "edgecolor": "#AAAAAA", "linewidth": 0.6} | filled
                    place = left + wide * part / ranks, top + 0.5 * rank
                    style.box(axes, *place, wide / ranks, 0.36, **look)
        for column, name in enumerate(steps[way]):
            sent = "update" not in name
            look = {"fontsize": 9, "bbox": {"boxstyle": "round,pad=0.3"} | message} if sent else {}
            middle, left = top + 0.25 * ranks, column * far + wide
            style.centred(axes, left + (far - wide) / 2, middle - 0.22, name, va="bottom", **look)
            ends = (left + far - wide - 0.15, middle), (left + 0.15, middle)
            axes.annotate("", *ends, arrowprops=ARROW)
        for rank in range(ranks):
            style.centred(axes, -0.15, top + 0.5 * rank + 0.18, f"rank {rank}", ha="right")
        style.centred(axes, -1.15, top - 0.42, way, ha="left", fontweight="bold", fontsize=10)
    axes.set_xlim(-1.2, 3 * far + wide + 0.2)
    axes.set_ylim(high + 0.5 * ranks + 0.05, -0.95)
    plt.show()


def storage(*, title: str) -> None:
    """Draw a gathered tensor, its storage, and the view that autograd saved, over one step."""
    moments = (  # above; whether autograd has saved a view; whether there is memory; what is called
        ("1  forward\ncomputes", True, True),
        ("2  until\nbackward", True, False),
        ("3  backward\ncomputes", True, True),
        ("4  after\nbackward", False, False),
    )
    rows = ("the view that\nautograd saved", "the tensor", "its storage,\nthe memory")
    changes = ("discard", "gather again", "discard")
    axes = style.axes(3.4, title)
    axes.axis("off")
    wide, far, tall, down = 1.5, 2.5, 0.6, 1.15
    empty = {"facecolor": "none", "edgecolor": "#888888", "linestyle": "--", "linewidth": 0.8}
    for column, (name, saved, memory) in enumerate(moments):
        left = column * far
        middle = left + wide / 2
        style.centred(axes, middle, -0.2, name, va="bottom")
        shape = {"facecolor": "#EEEEEE", "edgecolor": "#888888", "linewidth": 0.8}
        style.box(axes, left, 0, wide, tall, **(shape if saved else empty))
        style.centred(axes, middle, tall / 2, "view" if saved else "released")
        style.box(axes, left, down, wide, tall, **shape)
        style.centred(axes, middle, down + tall / 2, "whole")
        full = palette.ground(palette.MEMORY["gathered"])
        style.box(axes, left, 2 * down, wide, tall, **(full if memory else empty))
        words = "all weights" if memory else "0 bytes"
        style.centred(axes, middle, 2 * down + tall / 2, words)
        for row in range(2) if saved else (1,):
            ends = (middle, (row + 1) * down - 0.03), (middle, row * down + tall + 0.03)
            axes.annotate("", *ends, arrowprops=ARROW)
    for column, words in enumerate(changes):
        left, height = column * far + wide, 2 * down + tall / 2
        axes.annotate("", (left + far - wide - 0.1, height), (left + 0.1, height), arrowprops=ARROW)
        words = words.replace(" ", "\n")
        style.centred(axes, left + (far - wide) / 2, height - 0.1, words, va="bottom")
    for row, name in enumerate(rows):
        style.centred(axes, -0.2, row * down + tall / 2, name, ha="right")
    axes.set_xlim(-1.7, 3 * far + wide + 0.1)
    axes.set_ylim(2 * down + tall + 0.1, -0.95)
    plt.show()


def one_layer(*, ranks: int, shard: int, title: str) -> None:
    """Draw what each rank holds of one layer, in each moment of forward and of backward.

    Args:
        shard: megabytes of a rank's shard.
    """
    whole = ranks * shard
    sum_of = lambda *parts: f"{' + '.join(map(str, parts))} = {sum(parts)} MB"
    own, every, mean = ("parameters", False), ("gathered", True), ("gradients", False)
    both = own, every, ("gradients", True)
    moments = {  # above; what is held, and whether all parts of it; its megabytes; what follows
        "FORWARD": (
            ("before the\nlayer's turn", (own,), f"{shard} MB", "all-\ngather"),
            ("the layer\ncomputes", (own, every), sum_of(shard, whole), "discard"),
            ("other layers\ncompute", (own,), f"{shard} MB", ""),
        ),
        "BACKWARD": (
            ("before the\nlayer's turn", (own,), f"{shard} MB", "all-\ngather"),
            ("the layer's\nbackward", both, sum_of(shard, whole, whole), "discard"),
            (
                "each rank has its\nown gradient",
                both[::2],
                sum_of(shard, whole),
                "reduce-\nscatter",
            ),
            ("a shard of the\naverage gradient", (own, mean), sum_of(shard, shard), ""),
        ),
    }
    wide, far, strip, down = 1.5, 2.6, 0.3, 1.15
    high = ranks * down + 1.6
    axes = style.axes(1.9 + 1.05 * ranks, title)
    axes.axis("off")
    message = {"facecolor": "none", "edgecolor": palette.outline(palette.ACTIVITY["message"])}
    for row, (name, columns) in enumerate(moments.items()):
        top = row * high
        look = {"ha": "left", "va": "bottom", "fontweight": "bold"}
        style.centred(axes, -1.2, top - 0.62, name, **look)
        for rank in range(ranks):
            look = {"ha": "right", "color": palette.colour(rank), "fontweight": "bold"}
            style.centred(axes, -0.15, top + down * rank + strip / 2, f"rank {rank}", **look)
        style.centred(axes, -0.15, top + down * ranks - 0.12, "each holds", ha="right", va="top")
        for column, (words, held, size, follows) in enumerate(columns):
            left = column * far
            style.centred(axes, left + wide / 2, top - 0.12, words, va="bottom")
            for rank in range(ranks):
                for line, (kind, full) in enumerate(held):
                    place = left, top + down * rank + strip * line
                    _strip(axes, *place, wide, strip - 0.03, kind, rank, ranks, full)
            look = {"fontweight": "bold", "va": "top"}
            style.centred(axes, left + wide / 2, top + down * ranks - 0.12, size, **look)
            if follows:
                middle, start = top + down * ranks / 2 - 0.1, left + wide
                sends = follows != "discard"
                look = {"bbox": {"boxstyle": "round,pad=0.3"} | message} if sends else {}
                look["va"] = "bottom"
                style.centred(axes, start + (far - wide) / 2, middle - 0.25, follows, **look)
                ends = (start + far - wide - 0.12, middle), (start + 0.12, middle)
                axes.annotate("", *ends, arrowprops=ARROW)
    names = {
        "parameters": "the rank's shard",
        "gathered": "gathered parameters",
        "gradients": "gradient",
    }
    solid = {kind: palette.ground(palette.MEMORY[kind], HELD) for kind in names}
    handles = [Patch(label=words, **solid[kind]) for kind, words in names.items()]
    handles.append(Patch(label="a message", **message))
    place = {"loc": "center left", "bbox_to_anchor": (3 * far - 0.45, 0.5 * down * ranks)}
    axes.legend(handles=handles, frameon=False, bbox_transform=axes.transData, **place)
    axes.set_xlim(-1.25, 3 * far + wide + 0.2)
    axes.set_ylim(2 * high - 1.25, -1.1)
    plt.show()


def _strip(
    axes: Axes,
    left: float,
    top: float,
    width: float,
    height: float,
    kind: str,
    rank: int,
    ranks: int,
    full: bool,
) -> None:
    """One row of parts, of which a rank holds all or only its own."""
    for part in range(ranks):
        filled = palette.ground(palette.MEMORY[kind], HELD) if full or part == rank else {}
        look = {"facecolor": "none", "edgecolor": "#BBBBBB", "linewidth": 0.6} | filled
        style.box(axes, left + width * part / ranks, top, width / ranks, height, **look)


def overlap(run: Run, *, title: str) -> None:
    """Draw what rank 0 computes in one step of each version, and its messages below.

    Args:
        run: a run whose script marked `VERSION, step NUMBER: WHAT`. Of each version the fastest
            step is drawn.
    """
    steps: dict[str, dict[str, list[tuple[str, float, float]]]] = {}
    for mark in run.timeline():
        step, _, what = mark["name"].partition(": ")
        version, _, number = step.partition(", step ")
        if mark["rank"] == 0 and number:
            block = what, 1e3 * mark["start"], 1e3 * mark["end"]
            steps.setdefault(version, {}).setdefault(number, []).append(block)
    rows = {version: min(own.values(), key=_length) for version, own in steps.items()}
    axes = style.axes(1.1 + 0.85 * len(rows), "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)
    for row, blocks in enumerate(rows.values()):
        origin = min(start for _, start, _ in blocks)
        for what, start, end in blocks:
            place = (row - 0.36, 0.34) if what in ("forward", "backward") else (row + 0.02, 0.3)
            look = {"edgecolor": "white", "linewidth": 0.5} | LOOK[what]
            axes.broken_barh([(start - origin, end - start)], place, zorder=2, **look)
        waits = {"facecolor": palette.ACTIVITY["wait"], "zorder": 1}  # it shows between the blocks
        axes.broken_barh([(0, _length(blocks))], (row - 0.36, 0.34), **waits)
    handles = [Patch(label=name, edgecolor="white", **look) for name, look in LOOK.items()]
    handles.insert(2, Patch(label="waiting", facecolor=palette.ACTIVITY["wait"]))
    axes.legend(handles=handles, ncols=5, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    plt.show()


def _length(blocks: list[tuple[str, float, float]]) -> float:
    """From the start of the first block to the end of the last one."""
    return max(end for *_, end in blocks) - min(start for _, start, _ in blocks)


def prefetch(
    panels: Mapping[str, Mapping[str, tuple[float, float]]], *, title: str, layers: int = 3
) -> None:
    """Draw forward with prefetching: what the GPU computes, and below what the link gathers.

    Args:
        panels: how many tokens to how wide a layer is, and then to the milliseconds that one layer
            computes and that its gather takes.
        layers: how many are drawn.
    """
    every = style.panels(len(panels), 1, 1.0 + 1.35 * len(panels), title, sharex=True)
    last = 0.0
    for axes, (tokens, widths) in zip(every, panels.items(), strict=True):
        for row, (computing, gathering) in enumerate(widths.values()):
            last = max(last, _lanes(axes, 2.4 * row, computing, gathering, layers))
        hide = {computing >= gathering for computing, gathering in widths.values()}
        words = {True: "all gathers but the first hide", False: "the GPU waits for each gather"}
        said = " or ".join(words[each] for each in sorted(hide))
        axes.set_title(f"{tokens} on each GPU: {said}", loc="left", fontsize=10)
        names = [name for width in widths for name in (f"{width}: GPU", "link")]
        places = [2.4 * row + lane for row in range(len(widths)) for lane in (0, 1)]
        axes.set_yticks(places, names, fontsize=9)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(2.4 * len(widths) - 0.8, -0.6)
    every[0].set_xlim(0, 1.005 * last)
    every[-1].set_xlabel("time in milliseconds; numbers in the bars: which layer")
    handles = [Patch(label=name, **look) for name, look in PARTS.items()]
    every[0].figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    plt.show()


def _lanes(axes: Axes, top: float, computing: float, gathering: float, layers: int) -> float:
    """Two lanes: while a layer computes, the next one is gathered. Returns when the last ends."""
    computes, waits, gathers = PARTS.values()
    free = started = 0.0  # when the GPU is free; when the newest gather began
    for layer in range(1, layers + 1):
        start = max(free, started + gathering)  # the gather has to be complete
        axes.broken_barh([(started, gathering)], (top + 0.6, 0.8), linewidth=0.8, **gathers)
        style.centred(axes, started + gathering / 2, top + 1, f"{layer}", fontsize=8)
        if start > free:
            axes.broken_barh([(free, start - free)], (top - 0.4, 0.8), linewidth=0.4, **waits)
        axes.broken_barh([(start, computing)], (top - 0.4, 0.8), linewidth=0.8, **computes)
        style.centred(axes, start + computing / 2, top, f"{layer}", fontsize=8)
        free, started = start + computing, start
    return free


def hidden(
    computing: Sequence[float], measured: Sequence[float], gather: float, *, title: str
) -> None:
    """Draw the milliseconds of a layer over the part in which it computes, beside the rule.

    Args:
        computing: milliseconds that a layer computes.
        measured: milliseconds that it takes, with prefetching.
        gather: milliseconds that its gather takes.
    """
    axes = style.axes(3.4, title, "milliseconds that a layer computes (log)", "ms per layer (log)")
    ends = min(computing) / 1.3, max(computing) * 1.3
    black = {"color": "black", "linewidth": 1.2}
    axes.plot(
        [ends[0], gather, ends[1]], [gather, gather, ends[1]], label="the longer of both", **black
    )
    axes.plot(computing, measured, "o", color=palette.ACTIVITY["update"], label="measured")
    axes.axvline(gather, **LINE)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    look = {"textcoords": "offset points", "color": style.GREY, "fontsize": 9, "ha": "right"}
    look |= {"xycoords": ("data", "axes fraction")}
    axes.annotate("the gather is longer: we wait", (gather, 0.95), (-6, 0), **look)
    words = "computing is longer:\nthe gather is hidden"
    axes.annotate(words, (ends[1], 0.08), (0, 0), **look)
    axes.legend(frameon=False, loc="center left")
    axes.grid(alpha=0.25)
    plt.show()


def hybrid(*, title: str) -> None:
    """Draw two machines with two ranks each: which shard each rank holds, fully and hybrid."""
    every = style.panels(1, 2, 2.5, title, bare=True)
    for axes, name, parts in zip(
        every, ("full: four shards", "hybrid: two shards, twice"), (4, 2), strict=True
    ):
        axes.set_title(name, loc="left", fontsize=10)
        for rank in range(4):
            machine, place = divmod(rank, 2)
            left, top = 5.2 * machine + 2.4 * place, 1.0
            for part in range(parts):
                own = part == rank % parts
                colour = palette.colour(rank % parts) if own else "none"
                look = {"facecolor": colour, "edgecolor": "#AAAAAA", "linewidth": 0.6}
                style.box(axes, left + 2 * part / parts, top, 2 / parts, 0.7, **look)
            style.centred(axes, left + 1, 0.8, f"rank {rank}", va="bottom")
        for machine in range(2):
            frame = {"fill": False, "edgecolor": style.GREY, "linestyle": ":"}
            style.box(axes, 5.2 * machine - 0.2, 0.1, 4.8, 2.0, **frame)
            style.centred(
                axes, 5.2 * machine + 2.2, 0.05, f"machine {machine}", va="bottom", fontsize=8
            )
        arrow = {"arrowstyle": "<->", "color": palette.NEUTRAL}
        ends = (1, 8.6) if parts == 4 else (2.2, 7.4)
        axes.annotate("", (ends[0], 2.35), (ends[1], 2.35), arrowprops=arrow)
        words = "gathers and reduce-scatters among all four"
        if parts == 2:
            words = "gathers and reduce-scatters stay inside a machine;\n"
            words += "between machines: one all-reduce of gradient shards"
        style.centred(axes, 4.8, 2.5, words, va="top", fontsize=8)
        axes.set_xlim(-0.4, 10.2)
        axes.set_ylim(3.5, -0.4)
    plt.show()
