"""The pictures that only notebook 00 draws."""

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text

from course_utils.show import collectives, style
from nbtorchrun import palette
from nbtorchrun.runs import Run

ARROW = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
FRAME = {"fill": False, "edgecolor": palette.NEUTRAL, "ls": "--", "lw": 1.2}
PLAIN = {"facecolor": "white", "edgecolor": palette.NEUTRAL}
CIRCLE, SLOT = 1.5, 0.42  # of the ring: its radius, and the width of a place in a list
MACHINE_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7}


def _boxed(axes: Axes, x: float, y: float, words: str, look: Mapping[str, Any]) -> Text:
    """Words in a box around a point."""
    box = {"boxstyle": "round,pad=0.4", "lw": 1.4} | look
    return axes.text(x, y, words, ha="center", va="center", fontsize=9, bbox=box)


def _join(axes: Axes, start: Text, end: Text, **look: Any) -> None:
    """An arrow from the edge of one box to the edge of another."""
    ends = {"patchA": start.get_bbox_patch(), "patchB": end.get_bbox_patch()}
    axes.annotate("", end.get_position(), start.get_position(), arrowprops=ARROW | look | ends)


def copies(run: Run) -> None:
    """One file, and the processes that torchrun made of it, each with its own memory."""
    axes = style.axes(2.1, "One file, three processes, three memories")
    axes.axis("off")
    middle = (len(run.ranks) - 1) / 2
    file = _boxed(axes, 1.1, middle, "the file\nthree_copies.py", PLAIN)
    starter = _boxed(axes, 3.6, middle, "torchrun\nstarts it 3 times", PLAIN)
    _join(axes, file, starter)
    for number, rank in enumerate(run.ranks):
        total = rank.stdout.split()[-1]
        tint = palette.ground(palette.colour(number))
        place = len(run.ranks) - 1 - number
        _join(axes, starter, _boxed(axes, 6.1, place, f"rank {number}", tint))
        axes.plot([6.1, 7.5], [place, place], color=palette.colour(number), lw=1.4, zorder=0)
        style.box(axes, 7.5, place - 0.33, 2.4, 0.66, **tint)
        style.centred(axes, 8.7, place, f"its memory: total = {total}")
    axes.set(xlim=(0, 10), ylim=(-0.6, len(run.ranks) - 0.4))
    plt.show()


def two_orders() -> None:
    """Two ranks that both send first, and two of which one receives first."""
    title = "The same four calls, in two orders"
    left, right = style.panels(1, 2, 2.4, title, bare=True)
    for axes, title in (
        (left, "both send first: nobody is ready to receive"),
        (right, "rank 1 receives first: both finish"),
    ):
        axes.set(xlim=(-1.0, 6.2), ylim=(-0.75, 2.1))
        axes.set_title(title, loc="left", fontsize=10)
        for rank in (0, 1):
            style.centred(axes, -0.15, 1.4 * (1 - rank) + 0.25, f"rank {rank}", ha="right")
        axes.annotate("", (6.1, -0.45), (0, -0.45), arrowprops=ARROW)
        style.centred(axes, 3.0, -0.64, "time (a drawing, not to scale)", color=style.GREY)
    wait = {"facecolor": palette.ACTIVITY["wait"], "edgecolor": style.GREY, "hatch": "//"}
    never = {"fill": False, "edgecolor": "#AAAAAA", "linestyle": ":"}
    for rank in (0, 1):
        row = 1.4 * (1 - rank)
        style.box(left, 0, row, 4.4, 0.5, **wait)
        words = f"send: waits for rank {1 - rank}'s recv"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        style.centred(left, 2.2, row + 0.25, words, bbox=ground)
        style.box(left, 4.6, row, 1.4, 0.5, **never)
        style.centred(left, 5.3, row + 0.25, "recv, never", color=style.GREY)
    message = palette.ground(palette.ACTIVITY["message"])
    for rank, calls in enumerate((("send", "recv"), ("recv", "send"))):
        for place, call in enumerate(calls):
            style.box(right, 2.6 * place, 1.4 * (1 - rank), 2.4, 0.5, **message)
            style.centred(right, 2.6 * place + 1.2, 1.4 * (1 - rank) + 0.25, call)
    for x, start, end in ((1.2, 1.4, 0.5), (3.8, 0.5, 1.4)):
        right.annotate("", (x, end), (x, start), arrowprops=ARROW)
    plt.show()


def ring(ranks: int) -> None:
    """An all-gather around a ring, round by round: what each rank has, and what it passes on."""
    title = "An all-gather around a ring: each rank passes on what came last"
    every = style.panels(-(-ranks // 2), 2, 2.9 * -(-ranks // 2), title, bare=True)
    for turn, axes in enumerate(every[:ranks]):
        axes.set_aspect("equal")
        axes.set(xlim=(-3.0, 3.0), ylim=(-2.0, 2.15))
        last = turn == ranks - 1
        axes.set_title("at the end" if last else f"round {turn + 1}", fontsize=10)
        for rank in range(ranks):
            if not last:
                _pass_on(axes, rank, ranks, (rank - turn) % ranks)
        for rank in range(ranks):
            held = {(rank - back) % ranks for back in range(turn + 1)}
            _list_of(axes, rank, ranks, held)
    plt.show()


def _place(rank: float, ranks: int) -> tuple[float, float]:
    """Where a rank stands on the circle; rank 0 at the top, then clockwise."""
    angle = pi / 2 - 2 * pi * rank / ranks
    return 1.25 * CIRCLE * cos(angle), CIRCLE * sin(angle)


def _list_of(axes: Axes, rank: int, ranks: int, held: set[int]) -> None:
    """A rank, and its list: a place for each rank's number, filled if it has that number."""
    x, y = _place(rank, ranks)
    left = x - ranks * SLOT / 2
    ground = {"facecolor": "white", "edgecolor": "none"}
    style.box(axes, left - 0.06, y - 0.3, ranks * SLOT + 0.12, 0.86, **ground, zorder=2)
    style.centred(axes, x, y + 0.38, f"rank {rank}", zorder=3)
    for owner in range(ranks):
        tint = palette.ground(palette.colour(owner)) if owner in held else PLAIN
        look = tint | ({} if owner in held else {"linestyle": ":"})
        style.box(axes, left + owner * SLOT, y - 0.24, SLOT - 0.04, 0.44, **look, zorder=3)
        if owner in held:
            middle = left + (owner + 0.5) * SLOT - 0.02
            style.centred(axes, middle, y - 0.02, str(10 * owner), fontsize=8, zorder=4)


def _pass_on(axes: Axes, rank: int, ranks: int, owner: int) -> None:
    """The arrow to the next rank, with the number that travels."""
    hue = palette.colour(owner)
    start, end = _place(rank + 0.2, ranks), _place(rank + 0.72, ranks)
    look = {"arrowstyle": "-|>", "mutation_scale": 14, "color": hue, "lw": 2}
    bend = f"arc3,rad={-0.12}"
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=bend, zorder=1, **look))
    x, y = _place(rank + 0.5, ranks)
    box = {"boxstyle": "round,pad=0.25", **palette.ground(hue)}
    style.centred(axes, 1.02 * x, 1.02 * y, str(10 * owner), fontsize=8, bbox=box, zorder=5)


def two_halves(run: Run) -> None:
    """An all-reduce in two steps: what each rank has before, between and after.

    Args:
        run: its ranks reported a reduce-scatter, with a number per rank before it.
    """
    found = {r["rank"]: r for r in run.reports if r["collective"] == "reduce_scatter"}
    ranks = len(found)
    pieces = [found[rank]["after"][0] for rank in range(ranks)]
    axes = style.axes(0.9 + 0.3 * ranks, "An all-reduce is a reduce-scatter, then an all-gather")
    axes.axis("off")
    own = {r: [piece if at == r else None for at, piece in enumerate(pieces)] for r in found}
    held = {
        "before": {rank: report["before"] for rank, report in found.items()},
        "a piece of the sum each": own,
        "the whole sum everywhere": dict.fromkeys(found, pieces),
    }
    end = collectives.stages(axes, ranks, held, ["reduce_scatter", "all_gather"])
    axes.set_xlim(0, end)
    plt.show()


def what_leaves(run: Run, rank: int) -> None:
    """The pieces that leave one rank in each half of an all-reduce, and where each of them goes.

    Args:
        run: its ranks reported a reduce-scatter, with a number per rank before it.
        rank: the one that sends.
    """
    found = {r["rank"]: r for r in run.reports if r["collective"] == "reduce_scatter"}
    others = [each for each in found if each != rank]
    title = f"An all-reduce on {len(found)} ranks: what leaves rank {rank}"
    left, right = style.panels(1, 2, 3.0, title, bare=True)
    halves = (left, "reduce-scatter", "input"), (right, "all-gather", "output")
    for axes, name, whole in halves:
        axes.set(xlim=(-1.75, len(found)), ylim=(-1.05, 3.1))
        words = f"{name}: {len(others)} pieces of S/{len(found)} leave"
        axes.set_title(words, loc="left", fontsize=10)
        axes.plot([0, len(found) - 0.14], [2.72, 2.72], color=style.GREY, marker="|", lw=1)
        middle = len(found) / 2 - 0.07
        style.centred(axes, middle, 2.94, f"its {whole}: S bytes", color=style.GREY)
        style.centred(axes, -0.2, 2.2, f"rank {rank}", ha="right")
        for other in others:
            style.centred(axes, other + 0.43, -0.72, f"rank {other}")
        style.centred(axes, -0.2, -0.72, "goes to", ha="right", color=style.GREY)
    before, total = found[rank]["before"], found[rank]["after"][0]
    for place, value in enumerate(before):
        _piece(left, place, 1.8, value, [rank])
        if place == rank:
            _piece(right, place, 1.8, total, list(found))
            style.centred(left, place + 0.43, 1.5, "stays", color=style.GREY)
            continue
        style.box(right, place, 1.8, 0.86, 0.78, fill=False, edgecolor="#BBBBBB", linestyle=":")
        for axes, start in ((left, place), (right, rank)):
            ends = (place + 0.43, 0.5), (start + 0.43, 1.72)
            axes.annotate("", *ends, arrowprops=ARROW)
        _piece(left, place, -0.4, value, [rank])
        _piece(right, place, -0.4, total, list(found))
    plt.show()


def _piece(axes: Axes, x: float, y: float, value: float, owners: Sequence[int]) -> None:
    """A number of one rank, in its colour; or a sum, with a stripe for each rank that is in it."""
    sums = len(owners) > 1
    look = PLAIN | {"edgecolor": style.GREY} if sums else palette.ground(palette.colour(owners[0]))
    style.box(axes, x, y, 0.86, 0.78, **look)
    for place, owner in enumerate(owners if sums else ()):
        width = 0.86 / len(owners)
        stripe = {"facecolor": palette.colour(owner)}
        style.box(axes, x + place * width, y, width, 0.14, **stripe)
    style.centred(axes, x + 0.43, y + 0.39 + 0.06 * sums, f"{value:g}")


def differences(found: Mapping[tuple[str, str], Sequence[float]], title: str) -> None:
    """How far a gradient is from that of one process: three seeds for each dtype and case."""
    cases = list(dict.fromkeys(case for _, case in found))
    every = style.panels(1, 3, 1.2 + 0.4 * len(cases), title, sharey=True)
    for axes, (dtype, epsilon) in zip(every, MACHINE_EPSILON.items(), strict=True):
        most = 1.0  # unit
        for row, case in enumerate(cases):
            units = [value / epsilon for value in found[dtype, case]]
            most = max(most, *units)
            places = [row + 0.14 * (seed - 1) for seed in range(len(units))]
            look = {"color": palette.NEUTRAL, "ms": 5, "ls": "none", "clip_on": False}
            axes.plot(units, places, "o", **look)
            if not any(units):
                axes.text(0.08 * most, row, "exactly 0", va="center", fontsize=9)
        axes.set_title(f"{dtype}: 1 unit is {epsilon:.2g}", fontsize=10)
        axes.set(xlim=(0, 1.1 * most), xlabel="units of the last digit")
    every[0].set_yticks(range(len(cases)), cases)
    every[0].set_ylim(len(cases) - 0.5, -0.5)
    plt.show()


def three_orders() -> None:
    """Three of the orders in which four numbers can be added: the running sum, in float32."""
    title = "The same four numbers in three orders: float32 after each addition (B is 100 million)"
    axes = style.axes(2.5, title)
    axes.axis("off")
    large = 1e8
    orders = ((large, 1, 1, -large), (large, 1, -large, 1), (large, -large, 1, 1))
    for row, order in enumerate(orders):
        y = -0.95 * row
        running = np.float32(order[0])
        last = _boxed(axes, 0, y, _short(running), PLAIN)
        for place, each in enumerate(order[1:], start=1):
            before, running = running, running + np.float32(each)
            lost = running == before
            box = _boxed(axes, 2.2 * place, y, _short(running), PLAIN)
            _join(axes, last, box)
            sign = "+" if each > 0 else "\N{MINUS SIGN}"
            words = f"{sign} {_short(abs(each))}" + (", lost" if lost else "")
            colour = palette.WRONG if lost else palette.NEUTRAL
            look = {"color": colour, "ha": "center", "fontsize": 9}
            axes.text(2.2 * place - 1.1, y + 0.14, words, **look)
            last = box
        last.set_weight("bold")
        words = f"{abs(sum(order) - running):g} too small" if sum(order) != running else "exact"
        axes.text(7.1, y, words, va="center", fontsize=9, color=style.GREY)
    axes.set(xlim=(-0.4, 8.2), ylim=(-2.3, 0.5))
    plt.show()


def _short(value: float) -> str:
    """A number, or B for 100 million."""
    return "B" if value == 1e8 else f"{value:g}"


def speeds(
    sizes: Sequence[int],
    passes: Sequence[Sequence[float]],
    alpha: float,
    beta: float,
    small: int = 1,
) -> None:
    """Measured times with the model's line, and its two parts.

    Args:
        sizes: of the messages, in bytes.
        passes: for each pass over the sizes, the seconds; the fastest of a size counts.
        alpha: seconds of start-up.
        beta: seconds per byte.
        small: the model is made from so many of the first sizes, and from the last.
    """
    title = "An all-reduce takes a start-up time and a time per byte"
    axes = style.axes(3.6, title, "size in bytes (log)", "time in milliseconds (log)")
    axes.set(xscale="log", yscale="log")
    fine = [4 ** (5 + step / 8) for step in range(65)]
    axes.axhline(1e3 * alpha, color="#AAAAAA", ls=":")
    axes.text(fine[-1], 0.8e3 * alpha, r"$\alpha$ alone", ha="right", va="top", color=style.GREY)
    axes.plot(fine, [1e3 * beta * size for size in fine], color="#AAAAAA", ls=":")
    words = {"color": style.GREY, "va": "center"}
    axes.text(0.35 * alpha / beta, 0.22e3 * alpha, r"$\beta$ · bytes alone", **words)
    model = [1e3 * (alpha + beta * size) for size in fine]
    axes.plot(fine, model, color=palette.NEUTRAL, label=r"the model: $\alpha + \beta$ · bytes")
    fastest = [1e3 * min(times) for times in zip(*passes, strict=True)]
    used = [number < small or number == len(sizes) - 1 for number in range(len(sizes))]
    for wanted, face, words in (
        (True, palette.NEUTRAL, r"fastest pass, $\alpha$ and $\beta$ are from these"),
        (False, "white", "fastest pass, not used for the model"),
    ):
        here = [number for number, each in enumerate(used) if each == wanted]
        look = {"color": palette.NEUTRAL, "mfc": face, "ms": 6, "ls": "none", "zorder": 3}
        points = [sizes[number] for number in here], [fastest[number] for number in here]
        axes.plot(*points, "o", **look, label=words)
    for number, seconds in enumerate(passes):
        look = {"color": "#AAAAAA", "ms": 7, "ls": "none"}
        label = None if number else "the other passes"
        axes.plot(sizes, [1e3 * each for each in seconds], "_", **look, label=label)
    axes.set_ylim(bottom=0.1e3 * alpha)
    axes.legend(fontsize=8, frameon=False)
    plt.show()


def nodes(ranks_on_node: Sequence[int]) -> None:
    """Nodes, their agents and their ranks."""
    axes = style.axes(2.9, "Two nodes, their agents, their ranks")
    axes.axis("off")
    number, agents = 0, []
    for node, count in enumerate(ranks_on_node):
        left = 4.6 * node
        axes.add_patch(plt.Rectangle((left, 0), 3.0, 2.6, **FRAME))
        axes.text(left + 0.1, 2.35, f"node rank {node}", color=palette.NEUTRAL, weight="bold")
        agents.append(_boxed(axes, left + 1.5, 1.75, "agent: torchrun", PLAIN))
        for local in range(count):
            x = left + 1.5 + 1.4 * (local - (count - 1) / 2)
            words = f"rank {number}\nlocal rank {local}"
            rank = _boxed(axes, x, 0.5, words, palette.ground(palette.colour(number)))
            _join(axes, agents[-1], rank)
            number += 1
    _join(axes, agents[0], agents[-1], arrowstyle="<|-|>", lw=2)
    style.centred(axes, 3.8, 1.98, "meet at a port", color=palette.NEUTRAL)
    axes.set(xlim=(-0.1, 7.7), ylim=(-0.1, 2.8))
    plt.show()


def busy_cores(cores: Mapping[str, float]) -> None:
    """How many cores two workers kept busy, as threads and as processes."""
    axes = style.axes(1.9, "Two threads take turns at Python code", "cores kept busy, at best")
    names = {
        "2 threads, Python code": "threads",
        "2 processes, Python code": "processes",
        "2 threads, matrix products": "torch_threads",
    }
    axes.barh(list(names), [cores[name] for name in names.values()], color=palette.NEUTRAL)
    axes.axvline(1, color="black", linewidth=1, linestyle=":")
    axes.invert_yaxis()
    plt.show()
