"""The pictures of notebook 03."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette
from nbtorchrun.runs import Run

MIB = 2**20
CAPS = (1, 2, 5, 10, 15, 25, 50)  # MiB, on the slider
ARROW = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "linewidth": 1.2, "shrinkA": 0}
MESSAGE, BACKWARD = palette.ACTIVITY["message"], palette.ACTIVITY["backward"]
EDGE = "#8A7A2A"  # around a message, which is pale on white
LINES = ("-", "--", ":")
PLANTED = {  # the versions of `forgetful.py`, in words
    "NaiveDDP": "right",
    "NoDivision": "nobody divides",
    "NoAverage": "nobody averages",
    "NoBroadcast": "nobody broadcasts",
}
WIDE = 1.2  # MiB: the least that has room for a number


def _bare(height: float, title: str, width: float, top: float) -> Axes:
    """Axes without ticks, from 0 to `width` and, downwards, from 0 to `top`."""
    axes = style.axes(height, title)
    axes.axis("off")
    axes.set_xlim(0, width)
    axes.set_ylim(top, 0)
    return axes


def _box(axes: Axes, left: float, top: float, width: float, words: str, colour: str) -> None:
    """A tinted box of height 0.7 with words in it."""
    style.box(axes, left, top, width, 0.7, **palette.ground(colour))
    style.centred(axes, left + width / 2, top + 0.35, words, fontsize=8.5)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", xy=end, xytext=start, arrowprops=ARROW)


def one_step(ranks: int = 3, rows: int = 4) -> None:
    """Draw one step of data parallel training: rows, replica, gradient, mean, replica."""
    title = "One step: same model, different rows; the gradients are averaged"
    axes = _bare(3.1, title, 15.4, ranks + 1.1)
    heads = ("its own rows", "its replica", "its gradient", "all-reduce", "the same replica again")
    for at, head in zip((1.2, 4.2, 7.2, 10.0, 13.4), heads, strict=True):
        style.centred(axes, at, 0.3, head, color=palette.NEUTRAL, fontsize=9)
    for rank in range(ranks):
        top, colour = 0.75 + rank * 1.1, palette.colour(rank)
        middle = top + 0.35
        axes.text(-0.05, top - 0.03, f"rank {rank}", fontsize=8, color=palette.NEUTRAL)
        for row in range(rows):
            look = palette.ground(colour)
            style.box(axes, 0.2 + 0.55 * row, top + 0.05, 0.45, 0.6, **look)
            style.centred(axes, 0.42 + 0.55 * row, middle, f"{rank * rows + row}", fontsize=8)
        _box(axes, 3.3, top, 1.8, "weights \u03b8", palette.MEMORY["parameters"])
        _box(axes, 6.2, top, 2.0, f"gradient g{rank}", colour)
        _box(axes, 11.9, top, 3.0, "\u03b8 \u2212 \u03b7 \u00b7 mean", palette.MEMORY["parameters"])
        for start, end in ((2.45, 3.25), (5.15, 6.15), (8.25, 9.15), (10.85, 11.85)):
            _arrow(axes, (start, middle), (end, middle))
    style.box(axes, 9.2, 0.75, 1.6, 1.1 * ranks - 0.4, **palette.ground(MESSAGE, 0.3))
    words = "(" + " +\n".join(f"g{rank}" for rank in range(ranks)) + f")\n/ {ranks}"
    style.centred(axes, 10.0, 0.55 + 0.55 * ranks, words, fontsize=9)
    plt.show()


def the_test() -> None:
    """Draw how a version is compared with one process."""
    axes = _bare(
        2.5, "The test: ranks that differ at the start must end as one process does", 15, 4.1
    )
    for at, head in (
        (1.6, "starts with"),
        (6.2, "five steps of SGD, float64"),
        (10.9, "parameters"),
    ):
        style.centred(axes, at, 0.2, head, color=palette.NEUTRAL, fontsize=9)
    for rank in range(3):
        top = 0.5 + 0.85 * rank
        _box(axes, 0.1, top, 3.0, f"rank {rank}: seed {1 + rank}", palette.colour(rank))
        middle = top + 0.35
        _box(axes, 4.2, top, 4.3, "a third of each step's rows", palette.colour(rank))
        _box(axes, 9.6, top, 2.6, f"replica {rank}", palette.colour(rank))
        _arrow(axes, (3.15, middle), (4.15, middle))
        _arrow(axes, (8.55, middle), (9.55, middle))
        axes.plot([12.2, 12.9], [middle] * 2, color=palette.NEUTRAL, linewidth=1.2)
    top = 3.2
    grey = {"facecolor": "#EEEEEE", "edgecolor": palette.NEUTRAL}
    for left, width, words in (
        (0.1, 3.0, "one process: seed 1"),
        (4.2, 4.3, "all rows of each step"),
        (9.6, 2.6, "reference"),
    ):
        style.box(axes, left, top, width, 0.7, **grey)
        style.centred(axes, left + width / 2, top + 0.35, words, fontsize=8.5)
    _arrow(axes, (3.15, top + 0.35), (4.15, top + 0.35))
    _arrow(axes, (8.55, top + 0.35), (9.55, top + 0.35))
    axes.plot([12.9, 12.9], [0.85, top + 0.35], color=palette.NEUTRAL, linewidth=1.2)
    _arrow(axes, (12.9, top + 0.35), (12.25, top + 0.35))
    axes.text(13.05, 2.1, "equal to the\nreference?", fontsize=9, va="center")
    plt.show()


def distances(found: Mapping[str, Sequence[float]]) -> None:
    """Draw how far each training ends from one process: a mark for each seed."""
    title = "Three planted mistakes, three seeds each: who notices?"
    axes = style.axes(3.2, title, "largest distance from one process after five steps (log scale)")
    bound, tolerance, edges = 1e-12, 1e-3, (1e-17, 1e3)
    labels = []
    for row, (name, values) in enumerate(found.items()):
        version, optimizer = name.split(", ")
        look = {"color": palette.NEUTRAL, "ms": 8, "alpha": 0.8, "mec": "white", "mew": 0.6}
        axes.plot(values, [row] * len(values), "o" if version == "NaiveDDP" else "X", **look)
        labels.append(f"{PLANTED.get(version, version)}, {optimizer}")
    zones = (
        (edges[0], bound, "white", "equal up to rounding:\nboth tests accept this"),
        (bound, tolerance, "#EEEEEE", "only a test that allows\n0.001 accepts this"),
        (tolerance, edges[1], "white", "both tests\nnotice this"),
    )
    for left, right, colour, words in zones:
        axes.axvspan(left, right, color=colour, zorder=0)
        style.centred(axes, (left * right) ** 0.5, -1.15, words, fontsize=8.5)
    for at, words in ((bound, "our bound: $10^{-12}$"), (tolerance, "0.001")):
        axes.axvline(at, color=palette.NEUTRAL, linestyle="--", linewidth=1)
        look = {"ha": "center", "va": "bottom", "fontsize": 9, "color": palette.NEUTRAL}
        axes.text(at, -1.9, words, **look)
    axes.set_title(title, loc="left", pad=20)
    axes.set_xscale("log")
    axes.set_xlim(*edges)
    axes.set_yticks(range(len(found)), labels)
    axes.set_ylim(len(found) - 0.5, -1.8)
    plt.show()


def hooks_and_buckets(layers: int = 4) -> None:
    """Draw when gradients are ready in backward, and when versions 1 to 4 send them."""
    title = "Backward goes from the last layer to the first: when can a gradient leave?"
    axes = style.axes(4.2, title, "time, in layers of backward")
    axes.set_xlim(0, 12.9)
    axes.set_ylim(5.75, -0.75)
    axes.spines["left"].set_visible(False)
    for number in range(layers):
        style.box(axes, number, -0.35, 1, 0.7, **palette.ground(BACKWARD, 0.25))
        style.centred(axes, number + 0.5, 0, f"layer {layers - number}")
    latency, bias, weight = 0.6, 0.1, 0.75  # every message: a latency, then its bytes
    layer = bias + weight
    ready: dict[str, list[tuple[float, float, str]]] = {  # when, bytes, words
        "1 one by one": [
            (layers, size, f"{name}{number + 1}")
            for number in range(layers)
            for size, name in ((weight, "w"), (bias, "b"))
        ],
        "2 flat": [(layers, layers * layer, "all gradients")],
        "3 hooks": [
            (number + 1, size, f"{name}{layers - number}")
            for number in range(layers)
            for size, name in ((bias, "b"), (weight, "w"))
        ],
        "4 buckets": [
            (last, 2 * layer, f"layers {layers - last + 2} and {layers - last + 1}")
            for last in range(2, layers + 1, 2)
        ],
    }
    for row, messages in enumerate(ready.values(), 1):
        y, free = row * 1.2, 0.0
        for when, size, words in messages:
            start = max(free, when)
            free = start + latency + size
            for left, width, strength in ((start, latency, 0.9), (start + latency, size, 0.3)):
                ground = palette.ground(MESSAGE, strength) | {"edgecolor": "none"}
                style.box(axes, left, y - 0.3, width, 0.6, **ground)
            whole = {"facecolor": "none", "edgecolor": EDGE}
            style.box(axes, start, y - 0.3, free - start, 0.6, **whole)
            middle = (start + free + latency * (size > 1)) / 2
            style.centred(axes, middle, y, words, fontsize=8)
        axes.text(free + 0.08, y, f"{free:.1f}", va="center", fontsize=9)
    axes.axvline(layers, color=palette.NEUTRAL, linestyle="--", linewidth=1)
    axes.text(layers + 0.08, -0.5, "backward ends", color=palette.NEUTRAL, fontsize=9)
    grounds = [palette.ground(MESSAGE, strength) | {"edgecolor": EDGE} for strength in (0.9, 0.3)]
    boxes = [plt.Rectangle((0, 0), 1, 1, **ground) for ground in grounds]
    words, place = ["latency of a message", "time for its bytes"], (0.74, 0.885)
    look = {"ncols": 2, "frameon": False, "fontsize": 9, "loc": "center"}
    axes.legend(boxes, words, bbox_to_anchor=place, **look)
    names = ["backward", *(f"version {name}" for name in ready)]
    axes.set_yticks([1.2 * row for row in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    plt.show()


def filled(sizes: Sequence[int], places: Sequence[Sequence[int]], cap: int, first_cap: int) -> None:
    """Draw some parameters in the order of the model, and below them the buckets they fill.

    Args:
        sizes: of the parameters, in bytes.
        places: of the parameters in each bucket, in the order in which buckets are sent.
        cap: of every bucket but the first, in bytes.
        first_cap: of the first bucket.
    """
    axes = style.axes(2.5, "From the last parameter to the first: which share a bucket?")
    axes.axis("off")
    right = sum(sizes)
    axes.set_xlim(-4.2, right + 0.1)
    axes.set_ylim(2.95, -0.75)
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    for place, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        style.box(axes, start + 0.06, 0.05, size - 0.12, 0.9, **palette.ground(BACKWARD, 0.25))
        style.centred(axes, start + size / 2, 0.5, f"place {place}\n{size} bytes", fontsize=8.5)
    _arrow(axes, (right, -0.3), (0, -0.3))
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    style.centred(axes, right / 2, -0.3, "backward computes gradients in this order", bbox=ground)
    for number, bucket in enumerate(places):
        most, end = cap if number else first_cap, starts[bucket[0]] + sizes[bucket[0]]
        held = sum(sizes[place] for place in bucket)
        whole = {"facecolor": "none", "edgecolor": EDGE, "linestyle": "--"}
        style.box(axes, end - most + 0.06, 1.15, most - 0.12, 0.9, **whole)
        look = palette.ground(MESSAGE, 0.5) | {"edgecolor": EDGE}
        style.box(axes, end - held + 0.06, 1.15, held - 0.12, 0.9, **look)
        words = f"bucket {number}\n{held} of {most} bytes"
        style.centred(axes, end - held / 2, 1.6, words, fontsize=8.5)
    words = "Bucket 0 is sent first. The dashed part stays empty."
    style.centred(axes, right / 2, 2.55, words, color=palette.NEUTRAL)
    for y, words in ((0.5, "parameters"), (1.6, "buckets")):
        axes.text(-4.2, y, words, va="center", fontsize=9, color=palette.NEUTRAL)
    plt.show()


def buckets(cut: Callable[[float], Sequence[Sequence[Any]]], caps: Sequence[float]) -> None:
    """Draw a model's gradients in the order in which they fill buckets, a row for each cap.

    Neighbouring buckets have different shades. In JupyterLab a slider changes the cap.

    Args:
        cut: takes a cap in MiB and returns the buckets of parameters, in the order they fill.
        caps: of the rows, in MiB.
    """

    def one(cap: float) -> None:
        _bucket_rows(style.axes(1.5, ""), cut, [cap])
        plt.show()

    style.slider(one, cap={f"{cap} MiB": cap for cap in CAPS})
    title = "ResNet-18: the cap decides how many messages its gradients make"
    _bucket_rows(style.axes(1.0 + 0.55 * len(caps), title), cut, caps)
    plt.show()


def _bucket_rows(axes: Axes, cut: Callable, caps: Sequence[float]) -> None:
    """A row for each cap: its buckets in two shades, a thin line between two gradients."""
    labels = []
    for row, cap in enumerate(caps):
        left, plan = 0.0, cut(cap)
        for number, bucket in enumerate(plan):
            shade = palette.ground(MESSAGE, (0.95, 0.45)[number % 2])["facecolor"]
            size = sum(parameter.nbytes for parameter in bucket) / MIB
            if size > WIDE:  # room for a number
                middle = left + size / 2
                style.centred(axes, middle, row, str(len(bucket)), fontsize=8, zorder=5)
            for parameter in bucket:
                look = {"color": shade, "edgecolor": "white", "linewidth": 0.3}
                axes.barh(row, parameter.nbytes / MIB, 0.7, left, **look)
                left += parameter.nbytes / MIB
            axes.plot([left, left], [row - 0.35, row + 0.35], color=EDGE, linewidth=1)
        labels.append(f"cap {cap} MiB: {len(plan)} message" + ("s" if len(plan) != 1 else ""))
    axes.set_yticks(range(len(caps)), labels)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("MiB of gradients, last parameter first (numbers: gradients in a message)")


def overlap(run: Run, where: str) -> None:
    """Draw rank 0's fastest step in each version: its work, and below it its messages.

    A version that waits for each message before it sends the next has all of them on one line; in
    any other version each message has a line of its own. A step that is much longer than those of
    all other versions is cut off, and a number says when it ends.

    Args:
        run: its script marked `VERSION, step NUMBER: WHAT`; messages are called `message`.
        where: what the messages travelled over.
    """
    steps: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for mark in run.timeline():
        if mark["rank"] == 0:
            step, _, what = mark["name"].partition(": ")
            version, _, number = step.partition(", step ")
            steps[version][number].append((what, 1e3 * mark["start"], 1e3 * mark["end"]))
    fastest = {version: min(own.values(), key=_length) for version, own in steps.items()}
    *others, longest = sorted(map(_length, fastest.values()))
    edge = min(1.05 * longest, 1.3 * others[-1])  # of the picture, in milliseconds
    axes = style.axes(6.2, "", "time in milliseconds")
    axes.set_title(f"When do messages travel? Rank 0, {where}", loc="left", pad=26)
    top, ticks = 0.0, []
    for step in fastest.values():
        origin = min(start for _, start, _ in step)
        messages = sorted((s - origin, e - origin) for what, s, e in step if what == "message")
        ticks.append(top + 0.2)
        for what, start, end in step:
            if what != "message":
                look = {"facecolor": palette.ACTIVITY[what]}
                if what == "wait":
                    look |= {"hatch": "///", "edgecolor": "#888888"}
                axes.broken_barh([(start - origin, end - start)], (top, 0.4), **look)
        if _length(step) > edge:
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 3}
            words = {"ha": "right", "va": "center", "fontsize": 9, "bbox": ground}
            axes.text(edge, top + 0.2, f"until {_length(step):.0f} ms \u2192", **words)
        top += 0.5
        in_turn = all(end <= start for (_, end), (start, _) in pairwise(messages))
        thin = not in_turn and len(messages) > 10
        line = 0 if in_turn else 0.045 if thin else 0.26  # from one message down to the next
        border = {} if thin else {"edgecolor": EDGE, "linewidth": 0.6}
        for number, (start, end) in enumerate(messages):
            at = (top + number * line, 0.03 if thin else 0.24)
            axes.broken_barh([(start, end - start)], at, facecolor=MESSAGE, **border)
        top += 0.64 + line * (len(messages) - 1)
    kinds = {name: palette.ACTIVITY[name] for name in ("forward", "backward", "wait", "message")}
    boxes = [
        plt.Rectangle((0, 0), 1, 1, fc=c, hatch="///" * (n == "wait")) for n, c in kinds.items()
    ]
    names = [*list(kinds)[:3], "message, from call to result"]
    axes.legend(boxes, names, ncols=4, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    axes.set_yticks(ticks, list(fastest))
    axes.set_ylim(top, -0.2)
    axes.set_xlim(0, edge)
    plt.show()


def _length(step: Sequence[tuple[str, float, float]]) -> float:
    """From the first mark of a step to its last one."""
    return max(end for *_, end in step) - min(start for _, start, _ in step)


def bathtub(rows: Sequence[tuple[float, int, float, float]], backward: float) -> None:
    """Draw milliseconds per step over the cap of a bucket, with its two walls and its floor.

    Args:
        rows: the cap in layers, how many messages it makes, and the milliseconds of the shortest
            and of the longest step.
        backward: milliseconds of computing alone.
    """
    title = "The size of a bucket: two walls, and a floor between them"
    axes = style.axes(4.2, title, "cap of a bucket, and the messages it makes", "ms per step")
    caps, counts, least, most = zip(*rows, strict=True)
    places, top = range(len(rows)), max(most)
    floor = [place for place in places if least[place] <= 1.1 * min(least)]
    left, right, height = floor[0] - 0.5, floor[-1] + 0.5, 1.45 * top
    pale = palette.ground(MESSAGE, 0.25)["facecolor"]
    for start, end, colour, words in (
        (-0.5, left, pale, "left wall:\nmany messages,\neach pays the latency"),
        (left, right, "white", "floor: within 10 %\nof the shortest step"),
        (right, len(rows) - 0.5, pale, "right wall:\none large last\nmessage, that\nnothing hides"),
    ):
        axes.axvspan(start, end, color=colour, zorder=0)
        style.centred(axes, (start + end) / 2, 0.97 * height, words, va="top", fontsize=9.5)
    above = [high - low for low, high in zip(least, most, strict=True)]
    bars = {"ecolor": "#999999", "elinewidth": 1.2, "capsize": 4}
    look = {"color": palette.NEUTRAL, "linewidth": 2, "ms": 7} | bars
    axes.errorbar(places, least, [[0] * len(above), above], fmt="o-", **look)
    for place, low in zip(places, least, strict=True):
        at = (place - 0.1, low - 0.025 * height)
        axes.text(*at, f"{low:g}", ha="center", va="top", fontsize=9)
    axes.axhline(backward, ls="--", color=palette.NEUTRAL, linewidth=1)
    words = f"computing alone: {backward:g} ms"
    axes.text(-0.4, 0.92 * backward, words, va="top", fontsize=9, color=palette.NEUTRAL)
    names = [f"{cap:g} layer" + "s" * (cap != 1) if cap >= 0.1 else "one gradient" for cap in caps]
    sent = [f"{count} message" + "s" * (count > 1) for count in counts]
    ticks = [f"{name}\n{words}" for name, words in zip(names, sent, strict=True)]
    axes.set_xticks(places, ticks, fontsize=9)
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(0, height)
    plt.show()


def bend(pieces: int = 4) -> None:
    """Draw a step with four buckets as the tokens are halved twice: when do messages stick out?"""
    title = "Fewer tokens shorten backward, but not the messages"
    axes = style.axes(4.2, title, "time (1 = the message of one bucket)")
    names = ("$n$ tokens", "$n/2$ tokens:\nthe bend", "$n/4$ tokens")
    for row, backward in enumerate((2.0 * pieces, pieces, pieces / 2)):
        top, forward, free = 1.75 * row, backward / 2, 0.0
        end = forward + backward
        style.box(axes, 0, top, forward, 0.5, **palette.ground(palette.ACTIVITY["forward"], 0.6))
        for piece in range(1, pieces + 1):
            full = forward + backward * piece / pieces
            look = palette.ground(BACKWARD, 0.25)
            style.box(axes, full - backward / pieces, top, backward / pieces, 0.5, **look)
            start = max(free, full)
            free = start + 1
            look = palette.ground(MESSAGE, 0.6) | {"edgecolor": EDGE}
            style.box(axes, start, top + 0.58, 1, 0.4, **look)
        wait = {"facecolor": palette.ACTIVITY["wait"], "edgecolor": "#888888", "hatch": "///"}
        style.box(axes, end, top, free - end, 0.5, **wait)
        words = f"$t_\\mathrm{{backward}}$ = {backward:g}"
        style.centred(axes, forward + backward / 2, top - 0.2, words, fontsize=9.5)
        words = f"$t_\\mathrm{{messages}}$ = {pieces}"
        axes.text(free + 0.12, top + 0.78, words, va="center", fontsize=9.5)
        axes.text(free + 0.12, top + 0.25, f"step: {free:g}", va="center", fontsize=9.5)
    strengths = {"forward": 0.6, "backward": 0.25, "message": 0.6}
    boxes = [
        plt.Rectangle((0, 0), 1, 1, **palette.ground(palette.ACTIVITY[kind], strength))
        for kind, strength in strengths.items()
    ]
    boxes.insert(2, plt.Rectangle((0, 0), 1, 1, **wait))
    words = ("forward", "backward", "wait", "message of one bucket")
    look = {"ncols": 1, "frameon": False, "fontsize": 9, "loc": "lower right"}
    axes.legend(boxes, words, bbox_to_anchor=(1, 0.08), **look)
    axes.set_xlim(0, 15.2)
    axes.set_ylim(4.7, -0.5)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([1.75 * row + 0.25 for row in range(3)], names)
    axes.tick_params(axis="y", length=0)
    plt.show()


def hiding(
    rows: Sequence[tuple[float, float, float]],
    models: Mapping[str, Callable[[float], float]] | None = None,
) -> None:
    """Draw a step over backward alone, in ms: without overlap, with it, and with all hidden.

    Args:
        rows: milliseconds of backward alone, of a step with one message after backward, and of a
            step with four buckets.
        models: name to the milliseconds of a step with four buckets, over those of backward; drawn
            in place of the step without overlap and of the bound.
    """
    title = "All but the last bucket hides, until backward is shorter than the messages"
    if models:
        title = "Two models of a step with four buckets, and what was measured"
    axes = style.axes(3.6, title, "backward alone, in ms (log scale)", "ms per step (log scale)")
    own, flat, step = zip(*rows, strict=True)
    least, most = min(own), max(own)
    line = [least * (most / least) ** (k / 60) for k in range(61)]
    messages = median(after - alone for alone, after in zip(own, flat, strict=True))
    if models is None:
        axes.loglog(own, flat, "s", color=palette.NEUTRAL, mfc="white", label="2 flat: no overlap")
        models = {"if all hid: the larger of backward and messages": lambda x: max(x, messages)}
    for (name, model), dash in zip(models.items(), LINES[::2], strict=False):
        look = {"color": EDGE, "linestyle": dash, "label": name}
        axes.loglog(line, [model(x) for x in line], **look)
    axes.loglog(line, line, "--", color=palette.NEUTRAL, label="backward alone")
    axes.loglog(own, step, "o", color=palette.NEUTRAL, label="4 buckets: overlap")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    ticks = [10, 20, 50, 100, 200, 400]
    axes.set_xticks([t for t in ticks if 0.9 * least <= t <= 1.1 * most])
    axes.set_yticks([t for t in ticks if t <= 1.3 * max(flat)])
    axes.legend(frameon=False, fontsize=9)
    plt.show()


def roofline(
    seconds: Callable[[float, float, float], tuple[float, float]], links: Mapping[str, float]
) -> None:
    """Draw what share of a step is computing, over the tokens per GPU.

    Args:
        seconds: takes tokens per GPU, bytes per second that leave a machine of eight GPUs, and the
            number of machines; gives the seconds of computing alone and of the step.
        links: name to bytes per second that leave a machine.
    """
    title = "When do messages hide? From each triangle on (the last bucket is left out)"
    words = "tokens per GPU and step (log scale)", "% of the step spent computing"
    axes = style.axes(3.8, title, *words)
    tokens = [10 ** (2 + 3 * k / 700) for k in range(701)]

    def share(n: float, link: float) -> float:
        computing, step = seconds(n, link, 128)
        return 100 * computing / step

    for (name, link), line in zip(links.items(), LINES, strict=True):
        shares = [share(n, link) for n in tokens]
        axes.semilogx(tokens, shares, color=palette.NEUTRAL, linestyle=line, linewidth=2)
        tenths = range(1, 1_000_000)  # of a token
        knee = tenths[bisect_left(tenths, 100 - 1e-9, key=lambda n: share(n / 10, link))] / 10
        axes.plot([knee], [100], "v", color=EDGE, ms=9, clip_on=False, zorder=5)
        style.centred(axes, knee, 109, f"{knee:,.0f} tokens", fontsize=9.5)
        beside = next(n for n, each in zip(tokens, shares, strict=True) if each > 60)
        words = name.replace(" of ", " of\n")
        axes.text(1.12 * beside, 55, words, fontsize=9.5, va="center")
    few, link = 1000, list(links.values())[1]
    axes.plot([few], [share(few, link)], "o", color=palette.NEUTRAL, ms=7)
    words = f"{few:,} tokens:\n{share(few, link):.0f} % of the step"
    axes.text(0.92 * few, share(few, link) + 9, words, fontsize=9, ha="right", va="center")
    axes.set_xlim(tokens[0], tokens[-1])
    axes.set_xticks(ticks := [100, 1000, 10_000, 100_000], [f"{each:,}" for each in ticks])
    axes.set_ylim(0, 116)
    axes.set_yticks(range(0, 101, 20))
    axes.grid(alpha=0.2)
    plt.show()


def scaling(
    seconds: Callable[[float, float, float], tuple[float, float]],
    links: Mapping[str, float],
    batch: float,
    length: int,
) -> None:
    """Draw how many times as fast a step gets, over the number of GPUs that share one batch.

    Args:
        seconds: as in `roofline`.
        links: name to bytes per second that leave a machine.
        batch: tokens per step of all GPUs.
        length: tokens in a sequence: a line marks where each GPU has one.
    """
    title = f"One batch of {batch / 1e6:g} million tokens: when does DDP stop scaling?"
    axes = style.axes(3.8, title, "GPUs (log scale)", "times as fast as one GPU (log scale)")
    gpus = [2 ** (3 + 11 * k / 120) for k in range(121)]
    for (name, link), line in zip(links.items(), LINES, strict=True):
        alone = seconds(batch, link, 1)[0]
        speedup = [alone / seconds(batch / n, link, n / 8)[1] for n in gpus]
        look = {"color": palette.NEUTRAL, "linestyle": line, "label": name}
        axes.loglog(gpus, speedup, **look)
    axes.loglog(gpus, gpus, color=MESSAGE, linewidth=4, alpha=0.5, zorder=0, label="ideal")
    most = batch / length
    axes.axvline(most, color=EDGE, linewidth=1)
    words = f"{most:.0f} GPUs: one sequence\nof {length:,} tokens each"
    axes.text(1.1 * most, gpus[0], words, fontsize=9, va="bottom")
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    plt.show()


def deal(shares: Sequence[Sequence[int]], size: int, title: str) -> None:
    """Draw which samples each rank gets, in its order; those given a second time are hatched."""
    longest = max(map(len, shares))
    axes = _bare(0.55 + 0.42 * len(shares), title, 0.5 + longest, len(shares))
    seen: set[int] = set()
    places = [(step, rank) for step in range(longest) for rank in range(len(shares))]
    for step, rank in places:
        sample = shares[rank][step]
        look = palette.ground(palette.colour(rank)) | ({"hatch": "////"} if sample in seen else {})
        style.box(axes, 0.4 + step, rank + 0.1, 0.9, 0.8, **look)
        words = f"{sample} again" if sample in seen else str(sample)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        look = {"bbox": box} if sample in seen else {}
        style.centred(axes, 0.85 + step, rank + 0.5, words, **look)
        seen.add(sample)
    for rank in range(len(shares)):
        axes.text(0, rank + 0.5, f"rank {rank}", va="center", fontsize=9)
    plt.show()


def weights(found: Mapping[str, Sequence[float]], counts: Sequence[int]) -> None:
    """Draw how much each token counts in the averaged gradient, a panel for each way."""
    title = "What does one token weigh in the gradient?"
    every = style.panels(1, len(found), 2.8, title, sharey=True)
    owners = [rank for rank, count in enumerate(counts) for _ in range(count)]
    for axes, (name, values) in zip(every, found.items(), strict=True):
        colours = [palette.colour(rank) for rank in owners]
        axes.bar(range(len(values)), values, color=colours, width=0.8)
        axes.axhline(1 / len(values), color=palette.NEUTRAL, linestyle="--", linewidth=1)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("token")
        axes.set_xticks([0, len(values) - 1])
    every[0].set_ylabel("weight in the gradient")
    look = {"ha": "right", "va": "bottom", "fontsize": 9, "color": palette.NEUTRAL}
    words = f"one process: 1/{len(owners)}"
    every[0].text(len(owners) - 0.4, 1.03 / len(owners), words, **look)
    for rank in range(len(counts)):
        every[-1].bar([0], [0], color=palette.colour(rank), label=f"rank {rank}: {counts[rank]}")
    every[-1].legend(frameon=False, title="tokens")
    plt.show()
