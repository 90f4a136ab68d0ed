"""The pictures that notebook 02 alone draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from course_utils.show import style
from nbtorchrun import palette

LOOK = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
DEVICES, ROWS = 4, 2  # of the two pictures of the four steps
LOSS = "#44AA99"  # of Paul Tol's muted palette, like `palette.ACTIVITY`
WAYS = {  # three trainings, in colours that no rank has
    "one device": ("#4477AA", "-", 3.4),
    "DataParallel": ("#997700", "--", 1.8),
    "mean of means": ("#AA3377", ":", 2.0),
}
RACERS = {"one device": "#4477AA", "DataParallel": "#997700", "DDP": "#228833"}
WAY = {  # what crosses between devices
    "scatter": "#DDCC77",
    "replicate": palette.ACTIVITY["copy"],
    "gather": LOSS,
    "backward": palette.ACTIVITY["backward"],
}
KINDS = {  # what a device holds, and the parts of a step in which it is made
    "parameters": ("parameters", "replicate"),
    "activations": ("forward",),
    "gradients": ("backward",),
    "optimizer": ("optimizer",),
    "other": ("batch", "scatter", "outputs", "gather"),
}
LABELS = {
    "optimizer": "optimizer's state (Adam)",
    "gradients": "gradients and what backward makes",
    "other": "batch, outputs, loss",
}


def forward() -> None:
    """The four steps of a forward pass, from left to right."""
    axes = _stage("Forward: DataParallel cuts the batch, copies the model and joins the outputs")
    heads = ("batch\non device 0", "scatter", "replicate", "parallel_apply", "gather\non device 0")
    _heads(axes, heads)
    for device in range(DEVICES):
        y = _lane(device)
        _rows(axes, 0, _row(device), device)
        _rows(axes, 8, _row(device), device)
        _arrow(axes, (0.45, _row(device)), (1.55, y))
        _rows(axes, 2, y, device)
        _box(axes, 4, y, "model" if device == 0 else "copy", device, filled=device == 0)
        _arrow(axes, (2.45, y), (3.3, y))
        _box(axes, 6, y, f"thread {device}", device)
        _arrow(axes, (4.7, y), (5.3, y))
        _arrow(axes, (6.7, y), (7.55, _row(device)))
        if device:
            _copy(axes, device, to_copy=True)
    plt.show()


def backward() -> None:
    """The same steps from right to left: gradients of outputs, of the copies, of the model."""
    axes = _stage("Backward: each device works on its own rows, and device 0 adds up the gradients")
    _heads(axes, ("", "", "add up\non device 0", "backward", "gradients of\nthe outputs"))
    for device in range(DEVICES):
        y = _lane(device)
        _rows(axes, 8, _row(device), device)
        _arrow(axes, (7.55, _row(device)), (6.7, y))
        _box(axes, 6, y, "its own rows", device)
        _arrow(axes, (5.3, y), (4.7, y))
        words = "model: sum" if device == 0 else "copy"
        _box(axes, 4, y, words, device, filled=device == 0)
        if device:
            _copy(axes, device, to_copy=False)
    y = _lane(0)
    _arrow(axes, (3.3, y), (2.5, y))
    axes.text(2.4, y, "one optimizer", ha="right", va="center", fontsize=9)
    plt.show()


def _stage(title: str) -> Axes:
    axes = style.axes(3.9, title)
    axes.axis("off")
    for device in range(DEVICES):
        axes.text(-1.9, _lane(device), f"device {device}", va="center", weight="bold")
    axes.set(xlim=(-1.95, 8.6), ylim=(-4.35, 1.5))
    return axes


def _lane(device: int) -> float:
    """The height of a device's lane."""
    return -1.25 * device


def _row(device: int) -> float:
    """The height of a device's rows in the whole batch."""
    return 0.45 - 0.6 * device


def _heads(axes: Axes, heads: Sequence[str]) -> None:
    for column, head in enumerate(heads):
        axes.text(2 * column, 0.85, head, ha="center", weight="bold", color=palette.NEUTRAL)


def _rows(axes: Axes, x: float, y: float, device: int) -> None:
    """The rows that a device works on, in its colour."""
    for row in range(ROWS):
        look = {"facecolor": palette.colour(device), "edgecolor": "white", "lw": 0.5}
        axes.add_patch(plt.Rectangle((x - 0.3, y + 0.03 - 0.2 * row), 0.6, 0.15, **look))


def _box(axes: Axes, x: float, y: float, words: str, device: int, filled: bool = True) -> None:
    look = {**palette.ground(palette.colour(device)), "lw": 1.5}
    if not filled:
        look |= {"facecolor": "none", "linestyle": "--"}
    axes.add_patch(plt.Rectangle((x - 0.68, y - 0.3), 1.36, 0.6, **look))
    axes.text(x, y, words, ha="center", va="center", fontsize=9)


def _arrow(axes: Axes, start: tuple, end: tuple, **more: Any) -> None:
    axes.annotate("", end, start, arrowprops=LOOK | more)


def _copy(axes: Axes, device: int, to_copy: bool) -> None:
    """Between the model on device 0 and a copy, along a rail beside the boxes."""
    left, rail = 3.32, 3.13 - 0.13 * device
    top, y = -0.05 - 0.05 * device, _lane(device) + 0.15
    for ends in (((left, top), (rail, top)), ((rail, top), (rail, y)), ((rail, y), (left, y))):
        (x0, y0), (x1, y1) = ends
        axes.plot([x0, x1], [y0, y1], color=palette.NEUTRAL, lw=1.1, solid_capstyle="round")
    if to_copy:
        _arrow(axes, (left - 0.2, y), (left, y))
    else:
        _arrow(axes, (left - 0.2, top), (left, top))


def normalisation(sizes: Sequence[int], curves: Sequence[Sequence[float]]) -> None:
    """BatchNorm's gradient beside one device's, over the rows of a device; a line for each seed."""
    title = "With BatchNorm, DataParallel's gradient nears one device's only with many rows"
    axes = style.axes(3.0, title, "rows per device (3 devices)", "gradient off by")
    for number, curve in enumerate(curves):
        label = "one line for each of 5 seeds" if number == 0 else None
        axes.loglog(sizes, curve, "o-", ms=3.5, lw=1.1, color="#4477AA", alpha=0.75, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    ticks = [0.01, 0.1, 1, 10]
    axes.set_yticks(ticks, [f"{tick:.0%}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    plt.show()


def trainings(runs: Mapping[str, Sequence[Mapping]]) -> None:
    """Three losses; below, how far two of them are from one device, in both precisions."""
    _, (above, below) = plt.subplots(
        2, 1, figsize=(8, 5.4), layout="constrained", sharex=True, height_ratios=(2, 3)
    )
    for way, (colour, line, width) in WAYS.items():
        losses = [float(step[way]) for step in runs["float64"]]
        above.plot(losses, line, lw=width, color=colour, label=way)
    above.set_ylabel("loss per image")
    above.set_ylim(bottom=0)
    title = "Three curves lie almost on one another (float64): which training has the bug?"
    above.set_title(title, loc="left")
    for way in ("mean of means", "DataParallel"):
        for name, marker in (("float32", "x"), ("float64", ".")):
            gap = [abs(float(step["one device"]) - float(step[way])) for step in runs[name]]
            gap = [value if value != value else max(value, 1e-17) for value in gap]
            look = {"color": WAYS[way][0], "ms": 4.5, "label": f"{way}, {name}"}
            below.semilogy(gap, marker, **look)
    below.set_xlabel("step")
    below.set_ylabel("difference from one device,\nper image")
    title = "Only the rounding shrinks with double precision (log scale; 0 is drawn at 1e-17)"
    below.set_title(title, loc="left")
    above.legend(frameon=False, ncols=3, fontsize=9)
    below.legend(frameon=False, ncols=2, fontsize=9, loc="upper center", bbox_to_anchor=(0.6, 0.62))
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    plt.show()


def weights(counts: Sequence[int], what: str) -> None:
    """The weight of each image or token in a mean of means; `counts` says how many a device has."""
    total = sum(counts)
    narrow = total > 10  # bars too narrow for words
    title = f"losses.mean() does not weigh every {what} alike"
    axes = style.axes(2.7 if narrow else 2.3, title, what, "weight")
    first = 1
    for device, count in enumerate(counts):
        places, weight = range(first, first + count), 1 / (len(counts) * count)
        look = {**palette.ground(palette.colour(device)), "label": f"device {device}"}
        axes.bar(places, [weight] * count, 0.8, **look)
        words, middle = f"1/{len(counts) * count}", first + (count - 1) / 2
        if narrow:
            words, look = f"each {words}", {"ha": "center", "fontsize": 9}
            axes.annotate(words, (middle, weight), (0, 2), textcoords="offset points", **look)
        else:
            style.centred(axes, middle, weight / 2, words)
        first += count
    axes.axhline(1 / total, color=palette.NEUTRAL, ls="--", lw=1.2, label=f"right: 1/{total}")
    axes.set_xticks(range(1, total + 1))
    axes.set_xlim(0.4, total + 0.6)
    axes.set_ylim(0, 1.25 / (len(counts) * min(counts)))
    look = {"frameon": False, "fontsize": 9, "loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axes.legend(**look)
    plt.show()


def travelled(models: Mapping[str, Mapping[str, int]]) -> None:
    """The shares of the ways among the bytes of a step, in a bar for each model."""
    title = "What crosses between four devices in one training step"
    axes = style.axes(2.5, title, "share of all bytes of the step (inside: MB)")
    for row, moved in enumerate(models.values()):
        left, total = 0.0, sum(moved.values())
        for way, size in moved.items():
            share = size / total
            look = palette.ground(WAY[way])
            axes.barh(row, share, 0.62, left=left, label=way if row == 0 else None, **look)
            if share > 0.05:
                digits = 0 if total > 1e8 else 2
                words = f"{size / 1e6:,.{digits}f}"
                style.centred(axes, left + share / 2, row, words)
            left += share
    sums = (sum(moved.values()) / 1e6 for moved in models.values())
    totals = (f"{size:,.{0 if size > 100 else 1}f} MB" for size in sums)
    names = [f"{name}\n{total}" for name, total in zip(models, totals, strict=True)]
    axes.set_yticks(range(len(models)), names)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    plt.show()


def star_and_ring() -> None:
    """Who sends parameters and gradients to whom: our DataParallel, and DDP with a ring."""
    bytes_ = "2 (N \N{MINUS SIGN} 1) S bytes"
    title = f"Both move {bytes_}; in the star, device 0 sends or gets all of them"
    star, ring, growth = style.mosaic("AAABBBCCC", 3.5, title)
    copies, gradients = WAY["replicate"], WAY["backward"]
    turns = [math.radians(90 - 360 * other / 3) for other in range(3)]  # device 1 is at the top
    places = [(0.0, 0.0), *((1.5 * math.cos(turn), 1.5 * math.sin(turn)) for turn in turns)]
    labels = ((0.43, 1.5), (0.9, -1.35), (-1.7, -1.35))  # beside devices 1, 2 and 3
    around = _circles(star, places)
    for other in range(1, DEVICES):
        _between(star, around[0], around[other], color=copies)
        _between(star, around[other], around[0], color=gradients)
    around = _circles(ring, [(0, 1.3), (1.3, 0), (0, -1.3), (-1.3, 0)])
    for device in range(DEVICES):
        look = {"color": gradients, "connectionstyle": "arc3,rad=-0.2"}  # bent outwards
        _between(ring, around[device], around[(device + 1) % DEVICES], **look)
    words = {(0.43, 0.3): "sends 3 S\ngets 3 S", **dict.fromkeys(labels, "sends S\ngets S")}
    for at, said in words.items():
        style.centred(star, *at, said, ha="left", weight="bold" if "3" in said else "normal")
    style.centred(ring, 0, 0, "each device\nsends 1.5 S\ngets 1.5 S", weight="bold")
    for axes, head in ((star, "a star: our DataParallel, N = 4"), (ring, "a ring: DDP, N = 4")):
        axes.set(xlim=(-1.95, 1.95), ylim=(-1.75, 1.9), aspect="equal")
        axes.axis("off")
        axes.set_title(head, fontsize=10)

    devices = range(2, 9)
    ways = {"DataParallel": [n - 1 for n in devices], "DDP": [2 * (n - 1) / n for n in devices]}
    for way, sent in ways.items():
        growth.plot(devices, sent, "o-", ms=4, color=RACERS[way])
        name = {"DataParallel": "star:\nN \N{MINUS SIGN} 1", "DDP": "ring: less than 2"}[way]
        at = (5.0, 5.6) if way == "DataParallel" else (5.6, 0.75)
        style.centred(growth, *at, name, color=RACERS[way], weight="bold")
    growth.set_title("the busiest device sends", fontsize=10)
    growth.set(xlabel="devices N", ylabel="in units of S", ylim=(0, 7.5))
    growth.set_xticks(devices)
    shown = {"copies of the parameters": copies, "gradients and their sums": gradients}
    handles = [plt.Line2D([], [], color=colour, lw=2) for colour in shown.values()]
    look = {"loc": "outside lower left", "ncols": 2, "frameon": False, "fontsize": 9}
    growth.figure.legend(handles, list(shown), **look)
    plt.show()


def _circles(axes: Axes, places: Sequence[tuple[float, float]]) -> list[Circle]:
    """A circle for each device, with its number."""
    made = []
    for device, place in enumerate(places):
        look = {**palette.ground(palette.colour(device)), "lw": 1.5}
        made.append(axes.add_patch(Circle(place, 0.33, **look)))
        style.centred(axes, *place, str(device), fontsize=11)
    return made


def _between(axes: Axes, start: Circle, end: Circle, **look: Any) -> None:
    """A bent arrow from one circle to another, outside of both."""
    bend = {"connectionstyle": "arc3,rad=0.2", "shrinkA": 2, "shrinkB": 2, "lw": 1.8}
    ends = {"patchA": start, "patchB": end}
    _arrow(axes, start.get_center(), end.get_center(), **bend | ends | look)


def race(raced: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """The time of a step, a panel for each model and a bar for each way; three rounds."""
    title = "How long one training step takes (the middle of three rounds; the line is their range)"
    every = style.panels(1, len(raced), 2.6, title, sharey=True)
    for axes, (name, ms) in zip(every, raced.items(), strict=True):
        for row, way in enumerate(RACERS):
            low, middle, high = (sorted(ms[way])[place] for place in (0, 1, -1))
            axes.barh(row, middle, 0.62, **palette.ground(RACERS[way]))
            if way == "DataParallel":
                copying = sorted(ms["replicate alone"])[1]
                look = {"facecolor": "none", "edgecolor": RACERS[way], "hatch": "////"}
                axes.barh(row, copying, 0.62, label="replicate alone", **look)
            axes.plot([low, high], [row, row], color="black", lw=1.6, solid_capstyle="butt")
            words = f"{middle:.1f}" if middle < 100 else f"{middle:.0f}"
            axes.annotate(words, (high, row), (4, 0), textcoords="offset points", va="center")
        axes.set_xlim(0, 1.3 * max(max(times) for times in ms.values()))
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("ms per step")
    every[0].set_yticks(range(3), ["one device", "DataParallel,\ntwo threads", "DDP,\ntwo ranks"])
    every[0].invert_yaxis()
    look = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
    every[0].figure.legend(*every[0].get_legend_handles_labels(), **look)
    plt.show()


def peaks(
    models: Mapping[str, Mapping[int, Mapping[str, int]]], alone: Mapping[str, Mapping[str, int]]
) -> None:
    """What one device holds without DataParallel, and each device with it, when it is most."""
    title = "Device 0 holds more than the others (at each device's own peak)"
    every = style.panels(1, len(models), 3.2, title)
    for axes, (name, devices) in zip(every, models.items(), strict=True):
        places = sorted(devices)
        bars = [alone[name], *(devices[place] for place in places)]
        heights = [-0.4, *(1 + place for place in places)]  # a gap below the one without
        left = [0.0] * len(bars)
        for kind, parts in KINDS.items():
            sizes = [sum(each.get(part, 0) for part in parts) / 1e6 for each in bars]
            look = {"color": palette.MEMORY[kind], "edgecolor": "white", "lw": 0.4}
            axes.barh(heights, sizes, left=left, label=LABELS.get(kind, kind), **look)
            left = [a + b for a, b in zip(left, sizes, strict=True)]
        axes.set_xlim(0, 1.05 * max(left))
        axes.set_yticks(heights, ["one device", *(f"device {place}" for place in places)])
        axes.invert_yaxis()
        axes.set_xlabel("MB")
        axes.set_title(name, loc="left", fontsize=10)
    look = {"ncols": 3, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    every[0].figure.legend(*every[0].get_legend_handles_labels(), **look)
    plt.show()


def step() -> None:
    """One step of DataParallel and of DDP over time; the lengths are made up."""
    parallel = {
        0: "copy:2 forward:3 copy:0.5 loss:0.7 copy:0.5 backward:6 copy:2 update:1",
        1: "wait:2 forward:3 wait:1.7 backward:6 wait:3",
    }
    ddp = dict.fromkeys((0, 1), "forward:3 loss:0.4 backward:6 wait:1 update:1")
    names = {
        "copy": "copies through device 0",
        "message": "messages of the all-reduce",
    }
    title = "DataParallel copies while others wait; DDP sends while it computes (a drawing)"
    every = style.panels(2, 1, 4.2, title, sharex=True, height_ratios=(2, 2.8))
    heads = ("DataParallel: one process, two threads", "DDP: two processes")
    for axes, lanes, head in zip(every, (parallel, ddp), heads, strict=True):
        for lane, text in lanes.items():
            now = 0.0
            for name, length in (word.split(":") for word in text.split()):
                axes.broken_barh([(now, float(length))], (lane - 0.3, 0.6), **_activity(name))
                now += float(length)
        axes.set_title(head, loc="left", fontsize=10)
        axes.set_xlim(0, 15.9)
        axes.set_yticks(range(2), ["device 0", "device 1"])
        axes.tick_params(bottom=False, labelbottom=False)
    messages = [(4.9, 1.8), (6.8, 1.8), (8.7, 1.7)]
    every[1].broken_barh(messages, (1.5, 0.45), **_activity("message"))
    every[1].set_yticks((0, 1, 1.72), ["device 0", "device 1", "between them"])
    every[0].set_ylim(1.5, -0.5)
    every[1].set_ylim(2.2, -0.5)
    every[1].set_xlabel("time (the lengths are made up)")
    shown = ["forward", "loss", *(name for name in palette.ACTIVITY if name != "forward")]
    handles = [plt.Rectangle((0, 0), 1, 1, **_activity(name)) for name in shown]
    labels = [names.get(name, name) for name in shown]
    look = {"loc": "outside lower center", "ncols": 4, "frameon": False, "fontsize": 9}
    every[0].figure.legend(handles, labels, **look)
    plt.show()


def _activity(name: str) -> dict[str, Any]:
    """How a block is drawn; waiting is hatched."""
    if name == "wait":
        return {"facecolor": "none", "edgecolor": "#888888", "hatch": "////", "linewidth": 0.4}
    colour = LOSS if name == "loss" else palette.ACTIVITY[name]
    return {"facecolor": colour, "edgecolor": palette.outline(colour), "linewidth": 0.5}


def parts(models: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """The processor time of the parts of a step, in a panel for each model, a bar for each way."""
    title = "DataParallel does more work than one device (processor time of all threads)"
    every = style.panels(len(models), 1, 0.9 + 1.75 * len(models), title)
    ways = {
        "one device": "one device",
        "DataParallel": "DataParallel,\nboth threads",
        "DDP in no_sync": "DDP in no_sync,\none of two ranks",
        "DDP": "DDP,\none of two ranks",
    }
    activities = {"replicate": "copy", "forward": "forward", "backward": "backward"}
    for axes, (name, measured) in zip(every, models.items(), strict=True):
        for row, way in enumerate(ways):
            left = 0.0
            for part, activity in activities.items():
                took = measured[way].get(part, 0.0)
                axes.barh(row, took, 0.7, left=left, **_activity(activity))
                left += took
        axes.set_yticks(range(len(ways)), list(ways.values()), fontsize=8)
        axes.invert_yaxis()
        axes.set_title(name, loc="left", fontsize=10)
    every[-1].set_xlabel("milliseconds of processor time per step, the fewest of 15 trials")
    handles = [plt.Rectangle((0, 0), 1, 1, **_activity(each)) for each in activities.values()]
    look = {"loc": "outside lower right", "ncols": 3, "frameon": False, "fontsize": 9}
    every[0].figure.legend(handles, list(activities), **look)
    plt.show()
