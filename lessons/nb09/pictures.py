"""The pictures that notebook 09 alone draws."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import lanes, style
from nbtorchrun import palette

KINDS = ("parameters", "gradients", "optimizer", "activations")
# Ways to compute: Paul Tol's bright palette (2021), which no rank and no activity has.
BLUE, RED, GREEN, YELLOW, PURPLE = "#4477AA", "#EE6677", "#228833", "#CCBB44", "#AA3377"
ARROW = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "lw": 1.6}
WAITS = {"facecolor": "#EEEEEE", "edgecolor": "#AAAAAA", "hatch": "////", "linewidth": 0.4}
THIN = {"color": palette.NEUTRAL, "lw": 1.6}


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], **look: Any) -> None:
    axes.annotate("", end, start, arrowprops=ARROW | look)


def two_stages(held: Sequence[int], sent: Sequence[int]) -> None:
    """Two ranks, what each holds, and the messages between them; all in bytes."""
    (axes,) = style.panels(1, 1, 2.0, "Two stages: what each holds, and what it sends", bare=True)
    for rank in range(2):
        look = palette.ground(palette.colour(rank))
        axes.add_patch(plt.Rectangle((6 * rank, 0), 3, 2, **look))
        words = f"rank {rank}: layers {4 * rank} to {4 * rank + 3}"
        style.centred(axes, 6 * rank + 1.5, 1, f"{words}\n{held[rank] / 1e3:.0f} kB of parameters")
    for height, start, end, words in (
        (1.5, 3.1, 5.9, f"activations, {sent[0] / 1e3:.0f} kB"),
        (0.5, 5.9, 3.1, f"their gradient, {sent[1] / 1e3:.0f} kB"),
    ):
        _arrow(axes, (start, height), (end, height))
        style.centred(axes, 4.5, height + 0.2, words)
    style.centred(axes, -1.5, 1, "inputs")
    style.centred(axes, 10.6, 1, "targets,\nloss")
    _arrow(axes, (-0.9, 1), (-0.1, 1))
    _arrow(axes, (9.9, 1), (9.1, 1))
    axes.set(xlim=(-2.2, 11.4), ylim=(-0.1, 2.2))
    plt.show()


def two_ways(curves: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """For each optimizer the losses with the whole batch, and with micro-batches added up."""
    title = "Right gradients, and gradients four times too large"
    every = style.panels(1, len(curves), 3.0, title, sharey=True)
    for axes, (name, (whole, parts)) in zip(every, curves.items(), strict=True):
        axes.plot(whole, lw=4, alpha=0.5, color=BLUE, label="the whole batch")
        axes.plot(parts, "--", color=PURPLE, label="4 micro-batches, added up")
        axes.set(xlabel="step", ylim=(0, None))
        axes.set_title(name, loc="left", fontsize=10)
    every[0].set_ylabel("loss")
    every[1].legend(frameon=False)
    plt.show()


def one_stage() -> None:
    """What one rank does for F and for B, with what it keeps between them."""
    title = "One micro-batch on one rank: forward keeps x and y, backward uses them"
    (axes,) = style.panels(1, 1, 3.0, title, bare=True)
    forward, backward = (palette.ground(palette.colour(0), lanes.SHADES[kind]) for kind in "FB")
    kept = palette.ground(palette.MEMORY["activations"], 0.6)
    for left, bottom, words, look in (
        (4, 3, "F: y = stage(x)", forward),
        (4, 0, "B: y.backward(gradient)", backward),
        (4.6, 1.75, "kept: x and y", kept),
    ):
        width, height = (2.8, 0.7) if "kept" in words else (4, 0.9)
        axes.add_patch(plt.Rectangle((left, bottom), width, height, **look))
        style.centred(axes, left + width / 2, bottom + height / 2, words)
    for start, end, words, place in (
        ((1.2, 3.45), (3.9, 3.45), "receive x", (2.5, 3.72)),
        ((8.1, 3.45), (10.8, 3.45), "send y", (9.45, 3.72)),
        ((10.8, 0.45), (8.1, 0.45), "receive the\ngradient of y", (9.45, 0.98)),
        ((3.9, 0.45), (1.2, 0.45), "send x.grad", (2.5, 0.72)),
        ((6, 2.95), (6, 2.5), "", (0, 0)),
        ((6, 1.7), (6, 0.95), "", (0, 0)),
    ):
        _arrow(axes, start, end)
        style.centred(axes, *place, words)
    for x, words in ((0.1, "the stage\nbefore"), (11.9, "the next\nstage")):
        style.centred(axes, x, 3.45, words)
        style.centred(axes, x, 0.45, words)
    axes.plot([8.05, 8.7], [0.2, -0.25], color=palette.NEUTRAL, lw=1)
    words = "adds to .grad of this stage's parameters"
    style.centred(axes, 8.8, -0.35, words, ha="left", fontsize=8)
    axes.set(xlim=(-0.9, 13.2), ylim=(-0.6, 4.1))
    plt.show()


def held_over_time(plans: Mapping[str, Sequence[Any]]) -> None:
    """How many micro-batches rank 0 holds, from the end of each F to the end of its B.

    Args:
        plans: a schedule's name to the spans that `play` found.
    """
    axes = style.axes(
        2.6,
        "Rank 0 holds half as much in 1F1B (p = 4, m = 8)",
        "time (one forward = 1)",
        "micro-batches\nthat rank 0 holds",
    )
    looks = ((BLUE, "-", 8.4), (PURPLE, "--", 13.2))
    for (name, spans), (colour, line, x) in zip(plans.items(), looks, strict=True):
        own = [span for span in spans if span.rank == 0]
        times, held = [0.0], [0]
        for span in own:
            times.append(span.end)
            held.append(held[-1] + (1 if span.action.kind == "F" else -1))
        axes.step(times, held, line, where="post", color=colour, lw=2)
        words = f"{name}: at most {max(held)}"
        axes.text(x, max(held) + 0.15, words, color=colour, va="bottom")
    axes.set(xlim=(0, None), ylim=(0, 9.5), yticks=range(0, 9, 2))
    plt.show()


def bubble_share(plans: Mapping[int, Any]) -> None:
    """How long a step of GPipe takes on a rank: its work, and the bubble.

    Args:
        plans: m to what `play` found.
    """
    axes = style.axes(
        2.7,
        "GPipe, p = 4: the bubble keeps its length, so its share shrinks",
        "time of a step (one forward = 1)",
    )
    for place, plan in enumerate(plans.values()):
        end = max(span.end for span in plan.spans)
        work = end * (1 - plan.idle)
        axes.barh(place, work, 0.66, **palette.ground(BLUE, 0.4))
        axes.barh(place, end - work, 0.66, left=work, **WAITS)
        words = f"waits {end - work:.0f} of {end:.0f} units: {plan.idle:.0%}"
        axes.text(end + 1, place, words, va="center", fontsize=9)
    axes.barh([0], [0], label="a rank works", **palette.ground(BLUE, 0.4))
    axes.barh([0], [0], label="it waits: the bubble", **WAITS)
    axes.set_yticks(range(len(plans)), [f"m = {m}" for m in plans])
    axes.set_xlim(0, 140)
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    plt.show()


def _lane(axes: Axes, rank: int, spans: Sequence[Any], last: float) -> None:
    """One rank: its actions, a row for each of its stages, and hatched where it waits."""
    own = [span for span in spans if span.rank == rank]
    rows = 1 + max(span.action.chunk for span in spans)
    times = [0.0, *(time for span in own for time in (span.start, span.end)), last]
    gaps = [(a, b - a) for a, b in zip(times[::2], times[1::2], strict=True) if b - a > 1e-9]
    axes.broken_barh(gaps, (rank - 0.36, 0.72), **WAITS)
    for _, action, start, end in own:
        bottom = rank - 0.36 + 0.72 * action.chunk / rows
        look = palette.ground(palette.colour(rank), lanes.SHADES[action.kind])
        axes.broken_barh([(start, end - start)], (bottom, 0.72 / rows), linewidth=0.6, **look)
        middle = (start + end) / 2, bottom + 0.36 / rows
        style.centred(axes, *middle, str(action.microbatch), fontsize=7.5)


def _waiting(
    plans: Mapping[str, Sequence[Any]], title: str, unit: str, inches: float
) -> list[Axes]:
    """The lanes of schedules one below another, with a legend; `inches` for each row of boxes."""
    ranks = 1 + max(span.rank for spans in plans.values() for span in spans)
    rows = [1 + max(span.action.chunk for span in spans) for spans in plans.values()]
    height = 1.0 + sum(0.4 + inches * ranks * (0.4 + 0.6 * row) for row in rows)
    look = {"sharex": True, "height_ratios": [0.4 + 0.6 * row for row in rows]}
    every = style.panels(len(plans), 1, height, title, **look)
    ends = [max(span.end for span in spans) for spans in plans.values()]
    for axes, (name, spans), end in zip(every, plans.items(), ends, strict=True):
        for rank in range(ranks):
            _lane(axes, rank, spans, end)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)], fontsize=8)
        axes.set_ylim(ranks - 0.5, -0.5)
        axes.set_xlim(0, 1.005 * max(ends))
    every[-1].set_xlabel(unit)
    boxes = [palette.ground("#000000", lanes.SHADES[kind]) | {"lw": 0.6} for kind in "FB"]
    handles = [plt.Rectangle((0, 0), 1, 1, **look) for look in (*boxes, WAITS)]
    look = {"ncols": 3, "frameon": False, "loc": "outside lower right", "fontsize": 9}
    every[0].figure.legend(handles, ["forward", "backward", "the rank waits"], **look)
    return every


def waiting(plans: Mapping[str, Sequence[Any]], title: str, unit: str) -> None:
    """The lanes of schedules one below another, hatched where a rank waits.

    Args:
        plans: a schedule's name to the spans that `play` found.
        title: of the picture.
        unit: what time is measured in.
    """
    _waiting(plans, title, unit, 0.32)
    plt.show()


def round_trip(plans: Mapping[str, Sequence[Any]], microbatch: int) -> None:
    """Where ranks wait for slow messages, and one micro-batch's way through 1F1B and back.

    Args:
        plans: a schedule's name to the spans that `play` found; 1F1B is the last.
        microbatch: the one whose way is drawn.
    """
    title = "A message takes 0.5: in 1F1B, each round trip makes the ranks wait (p = 4, m = 8)"
    axes = _waiting(plans, title, "time (one forward = 1)", 0.34)[-1]
    *_, spans = plans.values()
    way = [span for span in spans if span.action.microbatch == microbatch]
    way.sort(key=lambda span: span.start)
    for rank, _, start, end in way:
        axes.broken_barh([(start, end - start)], (rank - 0.36, 0.72), fc="none", ec="black", lw=1.6)
    for before, after in pairwise(way):
        if (step := after.rank - before.rank) != 0:
            corners = (
                (before.end, before.rank + 0.36 * step),
                (after.start, after.rank - 0.36 * step),
            )
            axes.plot(*zip(*corners, strict=True), color="black", lw=1.6)
    first, last = way[0].start, way[-1].end
    axes.annotate("", (first, -0.62), (last, -0.62), arrowprops={"arrowstyle": "<->", "lw": 1.2})
    work = sum(end - start for *_, start, end in way)
    words = f"micro-batch {microbatch}, there and back: {work:.0f} units of work, "
    words += f"{last - first - work:.0f} of messages"
    style.centred(axes, (first + last) / 2, -0.9, words)
    axes.set_ylim(3.5, -1.15)
    plt.show()


def two_chunks(plans: Mapping[str, Sequence[Any]]) -> None:
    """1F1B above interleaved, where a rank has a row of boxes for each of its two chunks."""
    title = "Two short stages on each rank halve the bubble (p = 4, m = 8)"
    axes = _waiting(plans, title, "time (one forward of a whole stage = 1)", 0.32)[-1]
    for row in range(2):
        look = {"ha": "left", "fontsize": 7.5, "color": style.GREY}
        style.centred(axes, axes.get_xlim()[1] * 0.875, 0.36 * row - 0.18, f"chunk {row}", **look)
    plt.show()


def twice_around() -> None:
    """Which layers each rank holds if it has two stages, and the way of a micro-batch."""
    title = "Interleaved: 16 layers as eight stages, and forward goes around twice"
    (axes,) = style.panels(1, 1, 2.6, title, bare=True)
    for stage in range(8):
        rank, left, bottom = stage % 4, 3 * (stage % 4), 2.1 - 2.1 * (stage // 4)
        axes.add_patch(
            plt.Rectangle((left, bottom), 2.2, 1.1, **palette.ground(palette.colour(rank)))
        )
        words = f"stage {stage}\nlayers {2 * stage}, {2 * stage + 1}"
        style.centred(axes, left + 1.1, bottom + 0.55, words)
        if rank < 3:
            _arrow(axes, (left + 2.25, bottom + 0.55), (left + 2.95, bottom + 0.55))
    for rank in range(4):
        style.centred(axes, 3 * rank + 1.1, 3.5, f"rank {rank}", color=style.GREY)
    style.centred(axes, -1.3, 2.65, "a micro-\nbatch")
    _arrow(axes, (-0.7, 2.65), (-0.05, 2.65))
    axes.plot([11.2, 11.8, 11.8, -0.7, -0.7], [2.65, 2.65, 1.6, 1.6, 0.55], **THIN)
    _arrow(axes, (-0.7, 0.55), (-0.05, 0.55))
    style.centred(axes, 5.6, 1.6, " back from rank 3 to rank 0 ", backgroundcolor="white")
    _arrow(axes, (11.25, 0.55), (11.95, 0.55))
    style.centred(axes, 12.4, 0.55, "loss")
    style.centred(axes, -2.6, 2.65, "chunk 0", color=style.GREY)
    style.centred(axes, -2.6, 0.55, "chunk 1", color=style.GREY)
    axes.set(xlim=(-3.3, 12.9), ylim=(-0.1, 3.7))
    plt.show()


def steps(ms: Sequence[int], played: Mapping[float, Mapping[int, Mapping[str, Any]]]) -> None:
    """How long a step takes in each schedule, one panel for each time of a message.

    Args:
        ms: the numbers of micro-batches.
        played: the time of a message to m to the schedule's name to what `play` found.
    """
    title = "The waiting in each schedule (p = 4; in brackets: held by rank 0 at m = 32)"
    every = style.panels(1, len(played), 3.6, title, sharey=True)
    looks = ((BLUE, "-", 5), (YELLOW, "-", 2.5), (RED, ":", 2), (GREEN, "--", 2), (PURPLE, "-.", 2))
    for axes, (latency, plans) in zip(every, played.items(), strict=True):
        for (name, last), (colour, line, width) in zip(plans[ms[-1]].items(), looks, strict=True):
            ends = [max(span.end for span in plans[m][name].spans) / (3 * m) for m in ms]
            chunks = 1 + max(span.action.chunk for span in last.spans)
            words = f"{name} ({last.alive[0] / chunks:g})"
            axes.plot(ms, ends, line, color=colour, lw=width, label=words)
        axes.axhline(1, color=palette.NEUTRAL, lw=1)
        axes.set_title(f"a message takes {latency:g}", loc="left", fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ms, [str(m) for m in ms])
        axes.set_xlabel("m, micro-batches")
    every[0].set_ylabel("a step, over the same\nwork without waiting")
    every[0].set_ylim(0.9, None)
    every[-1].legend(frameon=False, fontsize=8, loc="upper right")
    plt.show()


def sharded(held: Mapping[tuple[int, str], Mapping[str, float]]) -> None:
    """Bytes on rank 0 over those of one process, for numbers of stages and schedules."""
    title = "A pipeline shards weights, not activations (rank 0)"
    axes = style.axes(3.1, title, "", "share of what one process holds")
    alone = next(iter(held.values()))
    for number, kind in enumerate(KINDS):
        places = [column + 0.2 * number - 0.3 for column in range(len(held))]
        shares = [each[kind] / alone[kind] for each in held.values()]
        look = palette.ground(palette.MEMORY[kind], 0.8)
        axes.bar(places, shares, 0.18, label=kind, **look)
    names = {"1f1b": "1F1B", "gpipe": "GPipe"}
    words = [f"{p} ranks, {names[name]}" if p > 1 else "one process" for p, name in held]
    axes.set_xticks(range(len(held)), words)
    axes.legend(frameon=False, loc="upper left")
    plt.show()


def how_many(piece: Mapping[int, float], p: int) -> None:
    """A step for several m: the work at full speed, what small pieces add, the bubble.

    Args:
        piece: m to the time of one micro-batch, if the whole batch in one piece takes 1.
        p: the number of stages.
    """
    axes = style.axes(
        3.1,
        f"Many pieces shrink the bubble, but small pieces are slow (p = {p})",
        "m, micro-batches in a batch of 256 rows",
        "time of a step\n(the batch in one piece = 1)",
    )
    places, bottom = range(len(piece)), [0.0] * len(piece)
    for words, colour, parts in (
        ("work at full speed", BLUE, [1.0 for _ in piece]),
        ("small pieces are slower", YELLOW, [max(0.0, m * each - 1) for m, each in piece.items()]),
        ("bubble", palette.ACTIVITY["wait"], [(p - 1) * each for each in piece.values()]),
    ):
        axes.bar(places, parts, 0.7, bottom, label=words, **palette.ground(colour, 0.7))
        bottom = [a + b for a, b in zip(bottom, parts, strict=True)]
    axes.set_xticks(places, [str(m) for m in piece])
    axes.legend(frameon=False, loc="upper center", ncols=3)
    axes.set_ylim(0, 1.25 * max(bottom))
    plt.show()


def price(ratios: Mapping[float, Mapping[int, float]]) -> None:
    """For several costs of W: m to the time of a zero-bubble step over that of 1F1B."""
    axes = style.axes(
        3.1,
        "Zero-bubble wins only while W is cheap (p = 4)",
        "m, micro-batches per batch",
        "a step, over 1F1B's",
    )
    looks = ((GREEN, "-"), (YELLOW, "--"), (RED, "-."))
    for (cost, times), (colour, line) in zip(ratios.items(), looks, strict=True):
        axes.plot(list(times), list(times.values()), line, color=colour, lw=2)
        words = f"W = {cost:g} F" + (", walks twice" if cost > 1.5 else "")
        axes.text(max(times) + 0.4, list(times.values())[-1], words, va="center", fontsize=9)
    axes.axhline(1, color=palette.NEUTRAL, lw=1)
    axes.text(11, 1.01, "slower than 1F1B", fontsize=8, color=palette.NEUTRAL, va="bottom")
    axes.text(11, 0.99, "faster", fontsize=8, color=palette.NEUTRAL, va="top")
    axes.set_xlim(3.5, 41)
    axes.set_xticks(range(4, 33, 4))
    plt.show()


def paid(steps: Mapping[str, tuple[float, float]]) -> None:
    """Each schedule's step over 1F1B's: measured, and as played."""
    axes = style.axes(2.6, "A step on two cores, beside the plan", "a step, over 1F1B's")
    for place, (measured, planned) in enumerate(steps.values()):
        axes.barh(place, measured, 0.6, **palette.ground(BLUE, 0.4))
        axes.plot([planned] * 2, [place - 0.36, place + 0.36], color=palette.WRONG, lw=2.5)
    axes.barh([0], [0], label="measured", **palette.ground(BLUE, 0.4))
    axes.plot([], [], color=palette.WRONG, lw=2.5, label="play says")
    names = {"walks twice": "zero-bubble,\nwalks twice", "splits": "zero-bubble,\nsplits"}
    axes.set_yticks(range(len(steps)), [names.get(name, name) for name in steps])
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


def held(most: Mapping[str, Sequence[int]], said: Mapping[str, Sequence[int]]) -> None:
    """How many micro-batches each rank holds: as autograd does, and as the checker says."""
    title = "Autograd holds as many micro-batches as the checker predicts"
    axes = style.axes(2.8, title, "", "micro-batches held at once")
    for column, (name, colour) in enumerate(zip(most, (BLUE, YELLOW), strict=True)):
        places = [rank + 0.4 * column - 0.2 for rank in range(len(most[name]))]
        look = palette.ground(colour, 0.7)
        axes.bar(places, most[name], 0.36, label=f"autograd, {name}", **look)
        axes.plot(places, said[name], "k_", ms=14, mew=2)
    axes.plot([], [], "k_", ms=14, mew=2, label="the checker")
    axes.set_xticks(range(4), [f"rank {rank}" for rank in range(4)])
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()
