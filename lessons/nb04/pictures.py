"""The pictures that notebook 04 alone draws."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from course_utils import cost
from course_utils.show import style
from nbtorchrun import palette
from nbtorchrun.runs import Run

# Ways to all-reduce: Paul Tol's bright palette (2021), which no rank and no activity has.
LOOKS = {
    "through rank 0": ("#AA3377", "o", "-"),
    "everyone to everyone": ("#CCBB44", "v", "-"),
    "tree": ("#228833", "s", "-"),
    "halving-doubling": ("#EE6677", "^", "--"),
    "ring": ("#4477AA", "D", "-"),
    "one ring": ("#4477AA", "D", "-"),
    "a ring per card": ("#66CCEE", "o", "-"),
    "two-level": ("#228833", "s", "-"),
    "two-level, halving": ("#EE6677", "^", "--"),
    "double tree": ("#AA3377", "v", "-."),
}
CODE = {  # code: its name
    "naive": "through rank 0",
    "everyone": "everyone to everyone",
    "halving_doubling": "halving-doubling",
}
RATIOS = [2.0**power for power in range(-2, 3)]
Points = tuple[Sequence[float], Sequence[float], Sequence[float]]


def _look(name: str) -> dict[str, str]:
    colour, marker, line = LOOKS[name]
    return {"color": colour, "marker": marker, "linestyle": line}


def who_sends(ways: Mapping[str, Sequence[Mapping]]) -> None:
    """Ranks on a circle, with an arrow for each pair of which one sends to the other.

    Args:
        ways: name to what each rank reported: `rank`, and `sent` in bytes.
    """
    title = "Arrows: who sends to whom. Beside each rank: how much it sends."
    every = style.panels(1, len(ways), 0.6 + 4.7 / len(ways), title, bare=True)
    for axes, (name, reports) in zip(every, ways.items(), strict=True):
        ranks = len(reports)
        places = _on_a_circle(ranks, first=0.75)
        circles = []
        for report, (x, y) in zip(reports, places, strict=True):
            ground = palette.ground(palette.colour(report["rank"]))
            circles.append(axes.add_patch(Circle((x, y), 0.22, lw=1.4, **ground)))
            style.centred(axes, x, y, f"{report['rank']}", fontsize=10)
            side = math.copysign(1, x)
            beside = {"ha": "left" if x > 0 else "right"}
            style.centred(axes, x + 0.32 * side, y, f"{report['sent'] / 1e6:.0f} MB", **beside)
        for source, target in _pairs(name, ranks):
            look = {"arrowstyle": "-|>", "color": palette.colour(source), "lw": 1.5}
            bend = {"connectionstyle": "arc3,rad=0.13"}
            _edge(axes, circles[source], circles[target], **look | bend)
        axes.set_title(name, fontsize=10)
        axes.set_xlim(-1.8, 1.8)
        axes.set_ylim(-1.05, 1.05)
        axes.set_aspect("equal")
    plt.show()


def _pairs(name: str, ranks: int) -> list[tuple[int, int]]:
    """Who sends to whom."""
    if name == "ring":
        return [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    every = [(one, other) for one in range(ranks) for other in range(ranks) if one != other]
    return [pair for pair in every if name == "everyone to everyone" or 0 in pair]


def _on_a_circle(ranks: int, first: float = 0.5) -> list[tuple[float, float]]:
    """Where the ranks stand, clockwise; `first` is the angle of rank 0, as a share of pi."""
    angles = [math.pi * (first - 2 * rank / ranks) for rank in range(ranks)]
    return [(math.cos(angle), math.sin(angle)) for angle in angles]


def deadlock() -> None:
    """Three ranks in a ring that all wait in `send`, and what each of them has not reached."""
    ranks = 3
    title = "Each rank waits in send until its right neighbour receives"
    (axes,) = style.panels(1, 1, 2.9, title, bare=True)
    places = [(1.5 * x, 0.85 * y) for x, y in _on_a_circle(ranks)]
    boxes = []
    for rank, (x, y) in enumerate(places):
        ground = palette.ground(palette.colour(rank))
        made = Rectangle((x - 0.62, y - 0.36), 1.24, 0.72, lw=1.4, zorder=3, **ground)
        boxes.append(axes.add_patch(made))
        style.centred(axes, x, y + 0.21, f"rank {rank}", fontsize=10, zorder=4)
        words = f"send to {(rank + 1) % ranks}: waits"
        style.centred(axes, x, y - 0.01, words, fontweight="bold", zorder=4)
        words = f"receive from {(rank - 1) % ranks}: not reached"
        style.centred(axes, x, y - 0.23, words, fontsize=8, color=style.GREY, zorder=4)
    for source, target in _pairs("ring", ranks):
        look = {"arrowstyle": "-|>", "color": palette.colour(source), "lw": 1.8}
        _edge(axes, boxes[source], boxes[target], shrinkB=3, **look)
        x, y = (sum(each) / 2 for each in zip(places[source], places[target], strict=True))
        words = {"ha": ("left", "center", "right")[source], "color": style.GREY}
        x, y = x + (0.16, 0, -0.16)[source], y + (0.06, 0.12, 0.06)[source]
        style.centred(axes, x, y, f"{source} waits for {target}", **words)
    axes.set_xlim(-3, 3)
    axes.set_ylim(-0.85, 1.25)
    plt.show()


def ring(ranks: int = 5) -> None:
    """A ring of ranks with a chunk per rank, and what each rank sends in the first step."""
    title = f"Step 1 in a ring of {ranks}: each rank sends one chunk to its right neighbour"
    (axes,) = style.panels(1, 1, 3.6, title, bare=True)
    places, width = _on_a_circle(ranks), 0.25
    circles = []
    for rank, (x, y) in enumerate(places):
        ground = palette.ground(palette.colour(rank))
        circles.append(axes.add_patch(Circle((x, y), 0.2, lw=1.4, **ground)))
        style.centred(axes, x, y, f"{rank}", fontsize=11)
        left = x + 0.35 if x > -0.1 else x - 0.35 - width * ranks
        for chunk in range(ranks):
            sent = chunk == rank
            look = ground | {"lw": 1.6} if sent else {"facecolor": "none", "edgecolor": "#BBBBBB"}
            style.box(axes, left + width * chunk, y - 0.14, width * 0.92, 0.28, **look)
            words = {"color": "black" if sent else style.GREY, "fontsize": 9}
            style.centred(axes, left + width * (chunk + 0.46), y, f"{chunk}", **words)
        words = {"color": style.GREY, "fontsize": 8.5}
        style.centred(axes, left + width * ranks / 2, y + 0.26, f"chunks of rank {rank}", **words)
    for source, target in _pairs("ring", ranks):
        look = {"arrowstyle": "-|>", "color": palette.colour(source), "lw": 1.8}
        _edge(axes, circles[source], circles[target], **look)
        x, y = (sum(each) / 2 for each in zip(places[source], places[target], strict=True))
        style.centred(axes, 0.62 * x, 0.68 * y, f"chunk {source}", fontsize=9)
    axes.set_xlim(-3.2, 3.2)
    axes.set_ylim(-1.05, 1.3)
    axes.set_aspect("equal")
    plt.show()


def hosts(count: int = 8, mbit: int = 100) -> None:
    """Hosts, a cable for each, and the switch that joins them."""
    title = f"{count} hosts inside one machine: each has its own cable to the switch"
    (axes,) = style.panels(1, 1, 2.2, title, bare=True)
    for host in range(count):
        left = 1.25 * host
        style.box(axes, left, 0, 1, 0.85, lw=1.4, **palette.ground(palette.colour(host)))
        style.centred(axes, left + 0.5, 0.43, f"host {host}\nrank {host}", fontsize=9)
        look = {"arrowstyle": "<|-|>", "color": style.GREY, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (left + 0.5, 1.95), (left + 0.5, 0.88), arrowprops=look)
    end = 1.25 * count - 0.25
    style.box(axes, 0, 1.98, end, 0.6, facecolor="none", edgecolor=style.GREY, lw=1.4)
    style.centred(axes, end / 2, 2.28, "switch")
    words = {"color": style.GREY, "ha": "left"}
    style.centred(axes, end + 0.15, 1.42, f"cable:\n{mbit} Mbit/s\neach way", **words)
    axes.set_xlim(-0.1, end + 1.6)
    axes.set_ylim(2.7, -0.1)
    plt.show()


def in_line() -> None:
    """What three ranks have in line: a send before a receive, and both as one batch."""
    title = "What NCCL works on (coloured) and what has to wait (grey), on three ranks of a ring"
    every = style.panels(1, 2, 2.5, title, bare=True)
    for axes, batched in zip(every, (False, True), strict=True):
        for rank in range(3):
            words = f"send\nto {(rank + 1) % 3}", f"receive\nfrom {(rank - 1) % 3}"
            ground = palette.ground(palette.colour(rank))
            later = palette.ground(palette.ACTIVITY["wait"])
            style.centred(axes, 2.2 * rank + 1, -0.25, f"rank {rank}", fontsize=10)
            for place, word in enumerate(words):
                left, top = (2.2 * rank + place, 0) if batched else (2.2 * rank, 1.15 * place)
                width, look = (1, ground) if batched else (2, later if place else ground)
                style.box(axes, left, top, width, 1, lw=1.3, **look)
                style.centred(axes, left + width / 2, top + 0.5, word, fontsize=8.5)
        if not batched:
            for place, word in enumerate(("first in line", "second in line")):
                style.centred(axes, -0.2, 1.15 * place + 0.5, word, ha="right", color=style.GREY)
        said = "one batch: both are first in line" if batched else "unbatched: nobody receives"
        axes.set_title(said, fontsize=10)
        axes.set_xlim(-0.2 if batched else -2.1, 6.6)
        axes.set_ylim(2.3, -0.5)
    plt.show()


def in_a_row(link: cost.Costs, sizes: Mapping[str, float], ranks: int = 4) -> None:
    """Two all-reduces over time: a lane for each rank, with what it sends above what it receives.

    Args:
        link: what a message costs on the link of each rank.
        sizes: name to the bytes of the tensor; each has a column.
        ranks: N.
    """
    others = range(1, ranks)
    ways = {  # who sends to whom, step by step, and the share of the tensor in a message
        "through rank 0": ([[(r, 0)] for r in others] + [[(0, r)] for r in others], 1),
        "ring": ([_pairs("ring", ranks)] * 2 * len(others), 1 / ranks),
    }
    ends = {
        (way, name): 1e6 * len(steps) * cost.seconds(cost.EXCHANGE, share * size, link)
        for way, (steps, share) in ways.items()
        for name, size in sizes.items()
    }
    widths = [max(ends[way, name] for way in ways) + 65 for name in sizes]  # room for a label
    title = f"{ranks} ranks over time. The digits count the messages in a row."
    look = {"sharex": "col", "width_ratios": widths}
    every = style.panels(len(ways), len(sizes), 1.1 + len(ways) * 0.47 * ranks, title, **look)
    for axes, (way, name) in zip(every, ends, strict=True):
        steps, share = ways[way]
        for rank in range(ranks):
            waits = palette.ground(palette.ACTIVITY["wait"])["facecolor"]
            style.box(axes, 0, rank - 0.4, ends[way, name], 0.8, facecolor=waits)
        for step, pairs in enumerate(steps):
            for source, target in pairs:
                start = ends[way, name] * step / len(steps)
                bar = 1e6 * share * sizes[name] * link.beta
                _message(axes, start, 1e6 * link.alpha, bar, step + 1, source, target)
        words = f"{ends[way, name]:.0f} µs"
        style.centred(axes, ends[way, name] + 6, (ranks - 1) / 2, words, ha="left")
        first = name == next(iter(sizes))
        axes.set_title(f"{way}, {name}" if first else name, loc="left", fontsize=10)
        axes.set_yticks(range(ranks) if first else [], [f"rank {r}" for r in range(ranks * first)])
        axes.set_ylim(ranks - 0.5, -0.5)
        axes.set_xlim(0, max(ends[each, name] for each in ways) + 65)
        axes.set_xticks(range(0, int(axes.get_xlim()[1]), 100))
    for axes in every[-len(sizes) :]:
        axes.set_xlabel("microseconds")
    _parts_of_a_message(every[-len(sizes)])
    plt.show()


def _message(
    axes: Axes, start: float, stub: float, bar: float, number: int, source: int, target: int
) -> None:
    """A message from rank `source` to rank `target`: a stub and a bar, in the lanes of both."""
    ground = palette.ground(palette.colour(source))
    for top, words in ((source - 0.4, f"to {target}"), (target, f"from {source}")):
        style.box(axes, start + stub, top, bar, 0.4, lw=0.9, **ground)
        style.box(axes, start, top, stub, 0.4, facecolor=style.GREY, edgecolor="white", lw=0.6)
        look = {"color": "white", "fontsize": 8, "fontweight": "bold"}
        style.centred(axes, start + stub / 2, top + 0.21, f"{number}", **look)
        if bar > 2 * stub:
            style.centred(axes, start + stub + bar / 2, top + 0.21, words, fontsize=8)


def _parts_of_a_message(axes: Axes) -> None:
    """What the patches of `in_a_row` mean, where its ring has ended and the other way has not."""
    looks = {
        "\u03b1: a stub, always equally long": {"facecolor": style.GREY},
        "β per byte: a bar in its sender's colour": {
            "facecolor": "white",
            "edgecolor": style.GREY,
        },
        "nothing to do": palette.ground(palette.ACTIVITY["wait"]),
    }
    handles = [plt.Rectangle((0, 0), 1, 1, **look) for look in looks.values()]
    title = "upper half of a lane: sends,\nlower half: receives"
    place = {"loc": "center right", "frameon": False, "fontsize": 8.5, "alignment": "left"}
    axes.legend(handles, looks, title=title, title_fontsize=8.5, **place)


def over_hosts(
    took: Mapping[tuple[str, int], float], formula: Callable, ways: Sequence, limit: float
) -> None:
    """Seconds over the number of hosts, and what the ring's milliseconds consist of.

    Args:
        took: (way, hosts) to seconds.
        formula: of a way and a number of hosts, gives the seconds of its bytes and of its messages.
        ways: which of them are drawn, as the code names them.
        limit: seconds that the ring's bytes take at most.
    """
    every = sorted({ranks for _, ranks in took})
    title = "1 MB: through rank 0 the time grows with N, around a ring it grows far less"
    left, right = style.panels(1, 2, 3.4, title, width_ratios=(1.35, 1))
    for way in ways:
        name = CODE.get(way, way)
        look = _look(name)
        marker = look.pop("marker")
        line = range(2, max(every) + 1)
        left.plot(line, [sum(formula(way, n)) for n in line], **look)
        measured = [took[way, n] for n in every]
        left.plot(every, measured, marker, color=look["color"], ms=6, label=name)
    left.axhline(limit, color=style.GREY, linewidth=0.9, linestyle=":")
    style.centred(left, 6, limit + 0.03, "2Sβ", va="bottom", color=style.GREY)
    left.set_title("both ways", loc="left", fontsize=10)
    left.set_ylim(bottom=0)
    left.set_xlabel("hosts N, each with a link of 100 Mbit/s")
    left.set_ylabel("seconds")
    words = {"title": "line: by formula, mark: measured", "title_fontsize": 8.5}
    left.legend(frameon=False, fontsize=8.5, loc="upper left", alignment="left", **words)
    _parts_of_the_ring(right, {n: (took["ring", n], *formula("ring", n)) for n in every})
    plt.show()


def _parts_of_the_ring(axes: Axes, parts: Mapping[int, tuple[float, float, float]]) -> None:
    """A bar for each number of hosts: the milliseconds measured, and what explains them."""
    colour = LOOKS["ring"][0]
    looks = {
        "not explained": {"facecolor": "white", "edgecolor": style.GREY, "hatch": "///"},
        "messages": {"facecolor": style.GREY},
        "bytes": {"facecolor": colour},
    }
    for place, (measured, volume, messages) in enumerate(parts.values()):
        bottom, rest = 0.0, max(0.0, measured - volume - messages)
        for name, part in (("bytes", volume), ("messages", messages), ("not explained", rest)):
            axes.bar(place, 1e3 * part, 0.6, 1e3 * bottom, lw=0.7, **looks[name])
            bottom += part
        words = {"fontsize": 8.5, "va": "bottom"}
        style.centred(axes, place, 1e3 * bottom + 3, f"{1e3 * measured:.0f}", **words)
        style.centred(axes, place, 5e2 * volume, f"{1e3 * volume:.0f}", color="white")
        middle = 1e3 * (volume + messages + rest / 2)
        words = {"ha": "left", "fontsize": 8.5, "color": style.GREY}
        style.centred(axes, place + 0.33, middle, f"{1e3 * rest:.0f}", **words)
    axes.set_xticks(range(len(parts)), [f"{hosts}" for hosts in parts])
    axes.set_xlim(-0.5, len(parts) - 0.35)
    axes.set_title("the ring's time: what the model explains", loc="left", fontsize=10)
    axes.set_xlabel("hosts N")
    axes.set_ylabel("milliseconds")
    axes.set_ylim(0, 1.45e3 * max(measured for measured, *_ in parts.values()))
    handles = [plt.Rectangle((0, 0), 1, 1, **look) for look in looks.values()]
    axes.legend(handles, looks, frameon=False, fontsize=8.5, loc="upper left")


def tree(run: Run) -> None:
    """The messages of an all-reduce up a tree and down again, and what the ranks hold.

    Args:
        run: of `watch_four.py` with `up_tree`, on a power of two of ranks.

    Raises:
        ValueError: a rank sent less than the whole tensor.
    """
    ranks = len(run.ranks)
    found = {(each["rank"], each["step"]): each for each in run.reports if "holds" in each}
    last = max(step for _, step in found)
    messages = {which: each for which, each in found.items() if each["sends"] is not None}
    if any(len(each["sends"]) < len(each["holds"]) for each in messages.values()):
        raise ValueError("a rank sent less than the whole tensor: this is another all-reduce")
    title = f"A tree of {ranks} ranks. An arrow: the whole tensor is sent. Dotted: nothing is sent."
    every = style.panels(1, 2, 3.3, title, bare=True)
    for axes, up in zip(every, (True, False), strict=True):
        boxes = {}
        for level in range(last // 2 + 1):
            for rank in range(0, ranks, 2**level):
                # A rank that does nothing in a step reports nothing, and holds what it holds next.
                at = level if up else last - level
                holds = next(found[rank, s] for s in range(at, last + 1) if (rank, s) in found)
                boxes[rank, level] = _node(axes, rank, level, holds["holds"][0], ranks)
                if (rank, level - 1) in boxes:
                    ends = boxes[rank, level - 1], boxes[rank, level]
                    _edge(axes, *ends, arrowstyle="-", color=style.GREY, linestyle=":")
        for (rank, step), each in messages.items():
            if (step < last // 2) == up:
                before, after = (step, step + 1) if up else (last - step, last - step - 1)
                ends = boxes[rank, before], boxes[each["to"], after]
                _edge(axes, *ends, arrowstyle="-|>", color=palette.colour(rank))
        for level in range(last // 2):
            words = f"step {level + 1 if up else last - level}"
            style.centred(axes, -0.5, 1.4 * level + 0.7, words, ha="right", color=style.GREY)
        axes.set_title("up: the sum grows" if up else "down: the sum is passed on", fontsize=10)
        axes.set_xlim(-1.15, ranks - 0.5)
        axes.set_ylim(-0.45, 1.4 * (last // 2) + 0.45)
    plt.show()


def _node(axes: Axes, rank: int, level: int, value: int, ranks: int) -> Rectangle:
    """A rank on a level of a tree, in the middle of the ranks below it, and what it holds."""
    x, y = rank + (2**level - 1) / 2, 1.4 * level
    ground = palette.ground(palette.colour(rank))
    made = axes.add_patch(Rectangle((x - 0.4, y - 0.36), 0.8, 0.72, lw=1.3, **ground))
    style.centred(axes, x, y + 0.16, f"rank {rank}", fontsize=8.5)
    digits = f"{value:0{ranks}d}"
    weight = "bold" if "0" not in digits else "normal"
    style.centred(axes, x, y - 0.17, digits, fontweight=weight)
    return made


def over_time(runs: Mapping[str, Run], link: cost.Costs, sizes: Mapping[str, float]) -> None:
    """All-reduces over time, and a ring of as many ranks below: who sends to whom in each step.

    Args:
        runs: name to a run of `watch_four.py`.
        link: what a message costs on the link of each rank.
        sizes: name to the bytes of the tensor; each has a column.
    """
    ranks = len(next(iter(runs.values())).ranks)
    ways = {name: _steps_of(run) for name, run in runs.items()}
    # The ring has a lane more: its last rank sends to rank 0, which stands below once more.
    ways["ring"] = [[(r, r + 1, 1 / ranks) for r in range(ranks)]] * 2 * (ranks - 1)
    ends = {
        (way, name): sum(_microseconds(step, size, link) for step in steps)
        for way, steps in ways.items()
        for name, size in sizes.items()
    }
    room = 75  # for a label
    widths = [max(ends[way, name] for way in ways) + room for name in sizes]
    lanes = {way: ranks + (way == "ring") for way in ways}
    title = "An arrow: a message from one rank to another. The thicker, the more bytes."
    look = {"sharex": "col", "width_ratios": widths, "height_ratios": list(lanes.values())}
    height = 1.4 + 0.4 * sum(lanes.values())
    every = style.panels(len(ways), len(sizes), height, title, **look)
    for axes, (way, name) in zip(every, ends, strict=True):
        _lanes(axes, ways[way], ranks, sizes[name], max(sizes.values()), link)
        count, first = lanes[way], name == next(iter(sizes))
        words = f"{ends[way, name]:.0f} µs"
        style.centred(axes, ends[way, name] + 12, (count - 1) / 2, words, ha="left")
        names = [f"rank {rank}" if rank < ranks else "rank 0 again" for rank in range(count)]
        axes.set_yticks(range(count) if first else [], names if first else [])
        title = f"{way}, {name}: {len(ways[way])} messages in a row" if first else name
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylim(count - 0.55, -0.45)
        axes.set_xlim(-2, max(ends[each, name] for each in ways) + room)
        axes.set_xticks(range(0, int(axes.get_xlim()[1]), 100))
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    for axes in every[-len(sizes) :]:
        axes.set_xlabel("microseconds")
    looks = {
        "\u03b1, with the number of the step": {"facecolor": style.GREY},
        "the message has arrived": {"facecolor": "white", "edgecolor": style.GREY},
        "nothing to do": palette.ground(palette.ACTIVITY["wait"]),
    }
    handles = [Rectangle((0, 0), 1, 1, **look) for look in looks.values()]
    place = {"loc": "outside lower center", "ncols": 3, "frameon": False, "fontsize": 8.5}
    every[0].figure.legend(handles, looks, **place)
    plt.show()


def _steps_of(run: Run) -> list[list[tuple[int, int, float]]]:
    """Step by step, the messages of a run: from whom, to whom, and the share of the tensor."""
    sent = [each for each in run.reports if each.get("sends") is not None]
    steps: list[list] = [[] for _ in range(1 + max(each["step"] for each in sent))]
    for each in sent:
        share = len(each["sends"]) / len(each["holds"])
        steps[each["step"]].append((each["rank"], each["to"], share))
    return steps


def _microseconds(step: Sequence[tuple[int, int, float]], size: float, link: cost.Costs) -> float:
    """How long a step takes, whose messages all begin at the same time."""
    return 1e6 * max(cost.seconds(cost.EXCHANGE, share * size, link) for *_, share in step)


def _lanes(
    axes: Axes, steps: Sequence, ranks: int, size: float, largest: float, link: cost.Costs
) -> None:
    """The messages of one all-reduce, in a lane for each rank."""
    start, stub = 0.0, 1e6 * link.alpha
    total = sum(_microseconds(step, size, link) for step in steps)
    lanes = 1 + max(target for step in steps for _, target, _ in step)
    axes.hlines(range(lanes), 0, total, color="#DDDDDD", linewidth=0.8, zorder=0)
    for number, step in enumerate(steps, 1):
        end = start + _microseconds(step, size, link)
        busy = {rank for source, target, _ in step for rank in (source, target)}
        for rank in set(range(ranks)) - busy:
            look = {"facecolor": palette.ground(palette.ACTIVITY["wait"])["facecolor"]}
            style.box(axes, start, rank - 0.3, end - start, 0.6, **look)
        for source, target, share in step:
            place = {"width": stub, "height": 0.5, "lw": 0.6}
            begun = Rectangle((start, source - 0.25), **place, facecolor=style.GREY, edgecolor="w")
            ground = palette.ground(palette.colour(target % ranks))
            there = Rectangle((end - 3, target - 0.25), 3, 0.5, lw=0.8, zorder=3, **ground)
            axes.add_patch(begun)
            axes.add_patch(there)
            words = {"color": "white", "fontsize": 8, "fontweight": "bold"}
            style.centred(axes, start + stub / 2, source + 0.02, f"{number}", **words)
            look = {"arrowstyle": "-|>", "color": palette.colour(source), "mutation_scale": 11}
            _edge(axes, begun, there, **look, lw=1 + 3.5 * share * size / largest, shrinkA=0)
        start = end


def _edge(axes: Axes, start: Rectangle | Circle, end: Rectangle | Circle, **look: Any) -> None:
    """An arrow or a line from the middle of one shape to that of another, outside of both."""
    look = {"patchA": start, "patchB": end, "shrinkA": 2, "shrinkB": 2, "lw": 1.6} | look
    axes.annotate("", end.get_center(), start.get_center(), arrowprops=look)


def crossing(
    curves: Mapping[str, Points],
    title: str = "Eight hosts on one machine: the tree wins on the left, and loses on the right",
) -> None:
    """Milliseconds over bytes, predictions as lines and measurements as marks; below, the ratio.

    Args:
        curves: way to (sizes in bytes, seconds measured, seconds predicted).
        title: of the whole picture.
    """
    above, below = style.panels(2, 1, 4.8, title, sharex=True, height_ratios=(3, 1.2))
    for way, (sizes, measured, predicted) in curves.items():
        name = CODE.get(way, way)
        look = _look(name)
        marker = look.pop("marker")
        above.plot(sizes, [1e3 * each for each in predicted], **look, linewidth=1.3)
        dots = {"color": look["color"], "label": name, "ms": 6}
        above.plot(sizes, [1e3 * each for each in measured], marker, **dots)
        ratios = [m / p for m, p in zip(measured, predicted, strict=True)]
        below.plot(sizes, ratios, marker, color=look["color"], ms=5)
    for axes in (above, below):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
    below.axhline(1, color=style.GREY, linewidth=0.8)
    above.set_ylabel("milliseconds (log scale)")
    above.legend(frameon=False, title="line: predicted, mark: measured")
    below.set_ylabel("measured /\npredicted")
    below.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
    below.minorticks_off()
    names = [f"{size >> 10} KiB" if size < 2**20 else f"{size >> 20} MiB" for size in sizes]
    below.set_xticks(sizes, names)
    below.set_xlabel("bytes on each rank (log scale)")
    plt.show()


def two_levels(stages: Mapping[str, Sequence[Sequence[float]]], node: int) -> None:
    """What each GPU holds after each stage: a column of chunks for each GPU, nodes in rows.

    Args:
        stages: name to the chunks that each rank holds then; a number says how many ranks' values
            are in the sum.
        node: GPUs per node.
    """
    title = "Two levels. A number: how many GPUs' values are in this sum. A column: one GPU."
    every = style.panels(1, len(stages), 3.5, title, bare=True)
    for place, (axes, (name, held)) in enumerate(zip(every, stages.items(), strict=True)):
        ranks = len(held)
        for rank, chunks in enumerate(held):
            top, left = (rank // node) * (node + 1.6), rank % node
            for chunk, value in enumerate(chunks):
                finished = value in (node, ranks)
                strength = palette.GROUND * (value - 1) / (ranks - 1) if finished else 0.0
                ground = palette.ground("#009E73", 0.04 + 0.96 * strength)
                look = {"facecolor": ground["facecolor"], "edgecolor": "none"}
                style.box(axes, left + 0.04, top + chunk + 0.04, 0.92, 0.92, **look)
                words = {"fontweight": "bold" if finished else "normal", "fontsize": 9}
                words["color"] = "black" if finished or place == 0 else style.GREY  # left over
                style.centred(axes, left + 0.5, top + chunk + 0.5, f"{value:.0f}", **words)
            if place == 2 and rank < node:  # the stage that crosses between the nodes
                look = {"arrowstyle": "<|-|>", "color": style.GREY, "lw": 1.3}
                ends = (left + 0.5, node + 1.48), (left + 0.5, node + 0.12)
                axes.annotate("", *ends, arrowprops=look | {"shrinkA": 0, "shrinkB": 0})
        for number in range(ranks // node):
            top = number * (node + 1.6)
            style.box(axes, -0.08, top - 0.08, node + 0.16, node + 0.16, fill=False, lw=1.2)
            if place == 0:
                words = {"ha": "right", "rotation": 90, "color": style.GREY}
                style.centred(axes, -0.35, top + node / 2, f"node {number}", **words)
        axes.set_title(name, fontsize=9)
        axes.set_xlim(-1, node + 0.2)
        axes.set_ylim(2 * node + 1.8, -0.2)
    plt.show()


def in_the_switch() -> None:
    """Four GPUs in a ring, and four at a switch that adds: what each sends and receives."""
    title = "Who adds? The GPUs of a ring, or the switch between them. S: bytes of the tensor"
    every = style.panels(1, 2, 2.7, title, bare=True)
    for axes, adds in zip(every, (False, True), strict=True):
        if adds:
            style.box(axes, 0, 0, 8.6, 0.9, facecolor="none", edgecolor=style.GREY, lw=1.4)
            style.centred(axes, 4.3, 0.45, "the switch adds, and sends copies")
        for rank in range(4):
            left = 2.4 * rank
            style.box(axes, left, 2.3, 1.4, 0.9, lw=1.4, **palette.ground(palette.colour(rank)))
            style.centred(axes, left + 0.7, 2.75, f"rank {rank}")
            look = {"arrowstyle": "-|>", "color": palette.colour(rank), "lw": 1.6}
            look |= {"shrinkA": 0, "shrinkB": 0}
            if adds:
                axes.annotate("", (left + 0.45, 0.95), (left + 0.45, 2.25), arrowprops=look)
                back = look | {"color": style.GREY}
                axes.annotate("", (left + 0.95, 2.25), (left + 0.95, 0.95), arrowprops=back)
            elif rank < 3:
                axes.annotate("", (left + 2.35, 2.75), (left + 1.45, 2.75), arrowprops=look)
            else:
                bend = look | {"connectionstyle": "arc3,rad=0.28"}
                axes.annotate("", (0.7, 2.25), (left + 0.7, 2.25), arrowprops=bend)
            copies = "S" if adds else "1.5 S"
            style.centred(axes, left + 0.7, 3.75, f"sends {copies}\ngets {copies}", fontsize=8.5)
        axes.set_title("sums in the switch (SHARP)" if adds else "a ring of four", fontsize=10)
        axes.set_xlim(-0.3, 9)
        axes.set_ylim(4.3, -0.2)
    plt.show()


def cluster(sizes: Mapping[str, float], gpus: Sequence[int], ways: Mapping[str, Callable]) -> None:
    """Calculated milliseconds over the number of GPUs, a panel for each size.

    Args:
        sizes: name to bytes.
        gpus: on the horizontal axis.
        ways: name to a function of GPUs and bytes that gives seconds.
    """
    title = "Calculated: nodes of 8 GPUs, a network card for each GPU"
    every = style.panels(1, len(sizes), 3.9, title)
    for axes, (name, size) in zip(every, sizes.items(), strict=True):
        for way, seconds in ways.items():
            line = [1e3 * seconds(n, size) for n in gpus]
            axes.loglog(gpus, line, **_look(way), ms=4, lw=1.5, label=way)
        axes.set_title(f"{name} on each GPU", loc="left", fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_xticks(gpus[::2], [str(n) for n in gpus[::2]])
        low, high = axes.get_ylim()
        ticks = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]
        ticks = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("GPUs (log scale)")
        axes.grid(alpha=0.25)
    every[0].set_ylabel("milliseconds (log scale)")
    handles = every[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": 5, "frameon": False, "fontsize": 8.5}
    every[0].figure.legend(*handles, **place)
    plt.show()


def double_tree() -> None:
    """NCCL's two trees of eight nodes, and what each node sends in each of them."""
    title = "Two trees of eight nodes, and what each node sends. S: bytes of the tensor"
    every = style.panels(1, 2, 3.5, title, bare=True)
    first = {4: 0, 2: 4, 6: 4, 1: 2, 3: 2, 5: 6, 7: 6}  # node: the one above it
    second = {7 - node: 7 - above for node, above in first.items()}
    names = "the first half of the tensor", "the second half"
    for axes, name, above in zip(every, names, (first, second), strict=True):
        for node in range(8):
            top, at = 0.0, node
            while at in above:
                top, at = top - 1.5, above[at]
            below = list(above.values()).count(node)
            if node in above:
                look = {"arrowstyle": "<|-|>", "color": style.GREY, "lw": 1.2}
                look |= {"shrinkA": 11, "shrinkB": 11}
                axes.annotate("", (node, top), (above[node], top + 1.5), arrowprops=look)
            ground = palette.ground(palette.colour(node)) if below else {"facecolor": "white"}
            look = {"edgecolor": palette.colour(node), "lw": 1.4} | ground
            axes.add_patch(Circle((node, top), 0.27, zorder=3, **look))
            style.centred(axes, node, top, f"{node}", fontsize=10, zorder=4)
            sends = (below + (node in above)) / 2  # a half up, and one to each node below
            right = above.get(node, -1) < node  # beside the node, where no arrow is
            look = {"ha": "left" if right else "right"} if below else {}
            x, y = (node + (0.4 if right else -0.4), top) if below else (node, top - 0.5)
            style.centred(axes, x, y, f"{sends:g} S", color=style.GREY, **look)
        axes.set_title(name, fontsize=10)
        axes.set_xlim(-0.6, 8.2)
        axes.set_ylim(-5.2, 0.5)
        axes.set_aspect("equal")
    plt.show()
