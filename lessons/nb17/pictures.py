"""The pictures that notebook 17 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from course_utils import palette, show
from nbtorchrun.runs import Run

LINES = ("#444444", "#AA4499", "#44AA99", "#999933", "#882255", "#117733")  # no rank's colours
BUGS = ("stale", "late", "order", "buffer", "base")  # in the order of their colours
ROLES = {"train": palette.ACTIVITY["backward"], "generate": palette.ACTIVITY["forward"]}


MARKS = {  # where each bug strikes in the generators' box: x and y of its words
    "stale": (6.27, 0.72),
    "late": (8.75, 0.72),
    "order": (7.4, 2.12),
    "base": (7.4, 2.6),
    "buffer": (7.4, 3.43),
}


def loop() -> None:
    """The loop of training and generating, over two and two ranks."""
    axes = show.style.axes(2.9, "Generate, score, learn, and send the new weights")
    axes.axis("off")
    axes.set(xlim=(0, 10), ylim=(2.95, -0.15))
    _side(axes, "step 3: trainers learn", 0.1, 3.2, 2.9)
    _side(axes, "step 1: generators write", 6.7, 3.2, 2.9)
    for rank in range(4):
        words = ("half of one long row (FSDP)", "half of the heads (tensor parallel)")[rank // 2]
        _rank(axes, rank, words, (0.25, 6.85)[rank // 2], 0.55 + 1.15 * (rank % 2), 2.9)
    _arrow(axes, (3.35, 1.0), (6.65, 1.0))
    show.style.centred(axes, 5.0, 1.2, "new weights", fontsize=8.5)
    _arrow(axes, (6.65, 2.2), (3.35, 2.2))
    words = "answers and their log-probabilities;\nstep 2: a program scores the answers"
    show.style.centred(axes, 5.0, 2.52, words, fontsize=8.5)
    plt.show()


def strikes(**marks: str) -> None:
    """The same loop, with five bugs in the generators' box.

    Args:
        **marks: for each bug, the words at the place where it strikes.
    """
    axes = show.style.axes(4.0, "Where each of the five bugs strikes: all in the generators' box")
    axes.axis("off")
    axes.set(xlim=(0, 10), ylim=(3.85, -0.15))
    _side(axes, "step 3: trainers learn", 0.1, 2.9, 3.8)
    _side(axes, "step 1: generators write", 4.9, 5.0, 3.8)
    for rank in range(2):
        _rank(axes, rank, "half of one long row (FSDP)", 0.25, 0.55 + 1.2 * rank, 2.6)
        words = "half of the heads\n(tensor parallel)"
        _rank(axes, 2 + rank, words, 5.05 + 2.4 * rank, 1.0, 2.3, 0.85)
    for left, top, width, height in ((0.25, 2.95, 2.6, 0.7), (5.05, 2.95, 4.7, 0.7)):
        show.style.box(axes, left, top, width, height, **palette.ground("#999999"))
        y = 3.13 if left > 1 else 3.3
        show.style.centred(axes, left + width / 2, y, "buffer: table of positions")
    _arrow(axes, (3.05, 0.72), (4.85, 0.72))
    show.style.centred(axes, 3.95, 0.92, "new weights", fontsize=8.5)
    _arrow(axes, (4.85, 2.0), (3.05, 2.0))
    words = "answers and their\nlog-probabilities;\nstep 2: a program\nscores the answers"
    show.style.centred(axes, 3.95, 2.5, words, fontsize=8.5)
    for colour, bug in zip(LINES[1:], BUGS, strict=True):
        box = {"facecolor": "white", "edgecolor": colour, "boxstyle": "round,pad=0.25"}
        look = {"bbox": box, "color": colour, "weight": "bold", "fontsize": 8.5}
        show.style.centred(axes, *MARKS[bug], f"{bug}: {marks[bug]}", **look)
    plt.show()


def _side(axes: Axes, name: str, left: float, width: float, height: float) -> None:
    """The frame around the trainers, or around the generators."""
    look = {"facecolor": "none", "edgecolor": show.style.GREY}
    show.style.box(axes, left, 0.0, width, height, **look)
    show.style.centred(axes, left + width / 2, 0.27, name, weight="bold", fontsize=8.5)


def _rank(
    axes: Axes, rank: int, what: str, left: float, top: float, width: float, height: float = 0.95
) -> None:
    """A rank, and what it holds."""
    show.style.box(axes, left, top, width, height, **palette.ground(palette.colour(rank)))
    show.style.centred(axes, left + width / 2, top + height / 2, f"rank {rank}\n{what}")


def six() -> None:
    """Six values on two trainers and one generator; trainer 0's message, place by place."""
    title = "Six values, by address. Lines: the message of trainer 0"
    axes = show.style.axes(2.9, title)
    axes.axis("off")
    axes.set(xlim=(-1.9, 7.3), ylim=(3.65, -0.5))
    rows = ((0, 0.0, (1, 2, 3)), (1, 3.7, (4, 5, 6)), (2, 0.35, (1, 3, 5, 2, 4, 6)))
    found: dict[int, dict[int, float]] = {}
    for rank, left, addresses in rows:
        y, look = (2.1, 0.0)[rank < 2], palette.ground(palette.colour(rank))
        name = f"trainer {rank}" if rank < 2 else "generator"
        height = y - 0.3 if rank < 2 else y + 1.35
        show.style.centred(axes, left + 0.5 * len(addresses), height, name, weight="bold")
        for place, address in enumerate(addresses):
            show.style.box(axes, left + place, y, 0.94, 0.7, **look)
            middle = left + place + 0.47
            show.style.centred(axes, middle, y + 0.35, str(address), weight="bold", fontsize=11)
            found.setdefault(rank, {})[address] = middle
            words = {"fontsize": 8, "color": show.style.GREY}
            show.style.centred(axes, middle, y + 0.95, str(place), **words)
    for y in (0.35, 2.45):
        show.style.centred(axes, -1.0, y, "address", fontsize=9)
        show.style.centred(axes, -1.0, y + 0.6, "place", fontsize=8, color=show.style.GREY)
    for address in (1, 2, 3):
        line = (found[0][address], 1.12), (found[2][address], 2.07)
        _arrow(axes, *line, color=palette.colour(0), linewidth=1.6)
    plt.show()


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], **look: Any) -> None:
    """An arrow; `look` is that of matplotlib's `FancyArrowPatch`."""
    look = {"arrowstyle": "->", "color": show.style.GREY, "shrinkA": 0, "shrinkB": 0} | look
    axes.annotate("", end, start, arrowprops=look)


def _smooth(values: Sequence[float], width: int = 10) -> list[float]:
    """The mean of each value and of those before it, up to `width` of them."""
    starts = (max(0, end - width) for end in range(1, len(values) + 1))
    return [
        sum(values[a:b]) / (b - a) for a, b in zip(starts, range(1, len(values) + 1), strict=True)
    ]


def learning(run: Run) -> None:
    """The reward of each training, over the updates."""
    title = "Three seeds, three policies that learn to sort"
    axes = show.style.axes(
        2.9, title, "update", "answers that are right, %\n(mean of the last 10 updates)"
    )
    for rank in sorted({report["rank"] for report in run.reports}):
        found = [r["reward"] for r in run.reports if r["rank"] == rank and "reward" in r]
        axes.plot([100 * x for x in _smooth(found)], color=LINES[rank], label=f"seed {rank}")
    axes.set_ylim(0, 100)
    axes.legend(frameon=False)
    plt.show()


def cache() -> None:
    """The positions that each step computes, without and with a cache."""
    title = "Four new tokens after a prompt of five: what each step computes"
    for axes, kept in zip(show.style.panels(1, 2, 2.6, title), (False, True), strict=True):
        axes.set(xlim=(-0.2, 8.2), ylim=(4.1, -0.3), xlabel="position", ylabel="step")
        axes.set_xticks([x + 0.5 for x in range(8)], range(8))
        axes.set_yticks([y + 0.5 for y in range(4)], range(1, 5))
        axes.set_title("with a cache" if kept else "without", loc="left", fontsize=10)
        for step in range(4):
            for place in range(5 + step):
                again = kept and place < (5 + step - 1 if step else 0)
                colour = palette.MEMORY["gathered" if again else "activations"]
                show.style.box(axes, place, step, 0.9, 0.9, **palette.ground(colour))
                show.style.centred(axes, place + 0.45, step + 0.45, "kept" if again else "new")
    plt.show()


def who_has_what(run: Run) -> None:
    """The messages of one update, and which parts of two matrices each of them carries."""
    title = "One update: every trainer sends one message to every generator"
    wide, *panels = show.style.mosaic("AA;BC", 4.9, title, height_ratios=[1.4, 1])
    parts = [r for r in run.reports if "name" in r]
    names = list(dict.fromkeys(r["name"] for r in parts))
    _row(wide, next(r["row"] for r in run.reports if "row" in r), names)
    _messages(wide, sorted((r for r in run.reports if "values" in r), key=lambda r: r["rank"]))
    for axes, name in zip(panels, names, strict=True):
        axes.set_title(name.removesuffix(".weight"), loc="left", fontsize=10)
        axes.set(xlabel="column", ylabel="row")
        _matrix(axes, [r for r in parts if r["name"] == name])
    plt.show()


def _row(axes: Axes, row: Sequence[tuple[str, int]], marked: Sequence[str]) -> None:
    """All parameters end to end, with the cut in the middle; `marked` ones are named."""
    size, begin = sum(count for _, count in row), 0
    words = f"trainers: {size:,} values in one row, cut in the middle (dashed)"
    axes.set_title(words, loc="left", fontsize=10)
    parts: dict[str, list[int]] = {}
    for name, count in row:
        part = ".".join(name.split(".")[: 2 if name.startswith("layers") else 1])
        first, _ = parts.get(part, (begin, 0))
        parts[part] = [first, begin + count]
        rank = int(2 * begin >= size)
        shown = palette.ground(palette.colour(rank))
        if name in marked:
            shown["facecolor"] = palette.colour(rank)
            words = name.removesuffix(".weight").rpartition(".")[2]
            show.style.centred(axes, begin + count / 2, 0.5, words, color="white", weight="bold")
        show.style.box(axes, begin, 0, count, 1, zorder=0, linewidth=0.5, **shown)
        begin += count
    for part, (first, last) in parts.items():
        if last - first > size / 20:
            show.style.centred(axes, (first + last) / 2, -0.35, part)
    axes.plot([size / 2] * 2, [-0.6, 1.15], color="black", linestyle="--", linewidth=1)
    for rank in range(2):
        look = {"va": "center", "fontsize": 9, "weight": "bold"}
        axes.text((0.02 + rank) * size / 2, -0.35, f"rank {rank} trains", **look)
    axes.axis("off")
    axes.set(xlim=(0, size), ylim=(4.1, -0.7))


def _messages(axes: Axes, messages: Sequence[Mapping[str, Any]]) -> None:
    """An arrow for each message, from a sender's half of the row to a part of the receiver."""
    size = axes.get_xlim()[1]
    gap = size / 20
    senders, receivers = (sorted({m[key] for m in messages}) for key in ("rank", "to"))
    half, total = size / len(senders), sum(m["values"] for m in messages)
    begin = left = (size - total - gap * (len(receivers) - 1)) / 2
    for receiver in receivers:
        look = palette.ground(palette.colour(receiver))
        for message in (m for m in messages if m["to"] == receiver):
            sender, values = message["rank"], message["values"]
            start = half * (senders.index(sender) + 0.5)
            middle = begin + values / 2
            colour = palette.colour(sender)
            _arrow(axes, (start, 1.05), (middle, 2.2), color=colour, linewidth=1.8)
            show.style.box(axes, begin, 2.2, values, 1.2, **look)
            words = f"message {sender} → {receiver}:\n{values:,} values, {values / size:.0%}"
            show.style.centred(axes, middle, 2.8, words.replace("%", " %"), fontsize=8.5)
            begin += values
        middle = left + (begin - left) / 2
        show.style.centred(axes, middle, 3.75, f"rank {receiver} generates", weight="bold")
        begin = left = begin + gap
    axes.set_xlim(size - begin + 0.9 * gap, begin - 0.9 * gap)  # `begin` is a gap too far


def _matrix(axes: Axes, parts: Sequence[Mapping[str, Any]]) -> None:
    """A matrix, value by value, in the colours of those that receive it, with its messages."""
    rows, columns = len(parts[0]["mine"]), len(parts[0]["mine"][0])
    image, edges = np.ones((rows, columns, 3)), ({0, columns}, {0, rows})
    for part in parts:
        mine = np.array(part["mine"], dtype=bool)
        image[mine] = to_rgb(palette.ground(palette.colour(part["receiver"]))["facecolor"])
        y, x = mine.nonzero()
        words = f"message {part['sender']} → {part['receiver']}"
        show.style.centred(axes, x.mean() + 0.5, y.mean() + 0.5, words)
        for found, places in zip(edges, (x, y), strict=True):
            found |= {int(places.min()), int(places.max()) + 1}
    axes.imshow(image, interpolation="nearest", extent=(0, columns, rows, 0), aspect="auto")
    axes.set_xticks(sorted(edges[0]))
    axes.set_yticks(sorted(edges[1]))


def bytes_sent(rows: Sequence[Mapping[str, Any]]) -> None:
    """The bytes of three ways: by formulas, as messages, on the wire."""
    title = "One update of the weights, all ranks together"
    axes = show.style.axes(2.7, title, "bytes sent, relative to the model's size S")
    for place, row in enumerate(rows):
        for shift, key in enumerate(("formula", "messages", "wire")):
            if row[key]:
                y, value = place + 0.26 * (shift - 1), row[key] / row["S"]
                axes.barh(y, value, 0.24, color=LINES[shift], label=key if not place else None)
    axes.set_yticks(range(len(rows)), [row["way"] for row in rows])
    axes.invert_yaxis()
    axes.legend(frameon=False)
    plt.show()


def bugs(seeds: Sequence[Mapping[str, Mapping[str, Any]]], tolerance: float) -> None:
    """Reward and gap of each broken system in all seeds, over those of the right one."""
    title = "What you watch (top) and what you could watch (bottom). Each line is one seed"
    look: dict[str, Any] = {"sharex": True, "sharey": "row"}
    look["gridspec_kw"] = {"height_ratios": (1.5, 1, 0.8)}
    every = show.style.panels(3, len(BUGS), 5.2, title, **look)
    rewards, highs, lows = (every[row * len(BUGS) :][: len(BUGS)] for row in range(3))
    for colour, bug, *column in zip(LINES[1:], BUGS, rewards, highs, lows, strict=True):
        for name, shown in (("none", RIGHT), (bug, colour)):
            for found in seeds:
                _watched(column, found[name], color=shown, linewidth=1.3)
        column[0].set_title(bug, color=colour, weight="bold", fontsize=10)
        column[0].axhline(1.2, color=show.style.GREY, linestyle=":")
        column[2].axhline(tolerance, color=show.style.GREY, linestyle=":")
        _broken(*column[1:])
        column[2].set_xlabel("update")
    words = {"fontsize": 8, "color": show.style.GREY}
    rewards[0].text(1, 1.88, "grey: right engines", va="top", **words)
    rewards[0].text(1, 1.22, "climbs", **words)
    lows[0].text(30, 2 * tolerance, "tolerance", ha="right", **words)
    rewards[0].set_ylabel("mean reward of the\nlast 10 updates, relative\nto that of the first 10")
    rewards[0].set(xlim=(0, 31), xticks=(1, 10, 20, 30), ylim=(0.8, 1.9))
    rewards[0].set_yticks((0.8, 1.0, 1.2, 1.4, 1.6, 1.8))
    highs[0].set(yscale="log", ylim=(0.05, 20), yticks=(0.1, 1, 10))
    highs[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    highs[0].set_ylabel("gap, nats")
    lows[0].set(yscale="log", ylim=(1e-16, 1e-8), yticks=(1e-15, tolerance))
    highs[0].minorticks_off()
    lows[0].minorticks_off()
    plt.show()


RIGHT = "#999999"  # right engines, behind broken ones


def _watched(column: Sequence[Axes], row: Mapping[str, Any], **look: Any) -> None:
    """The reward of one system, and its gap on both parts of a broken axis."""
    means = _smooth(row["rewards"])[9:]  # from here on, all ten are there
    column[0].plot(range(10, 10 + len(means)), [mean / means[0] for mean in means], **look)
    gaps = [max(gap, 1e-16) for gap in row["gaps"]]  # a logarithmic axis has no 0
    for axes in column[1:]:
        axes.plot(range(1, len(gaps) + 1), gaps, **look)


def _broken(high: Axes, low: Axes) -> None:
    """Marks for the values that are left out between two parts of one axis."""
    high.spines["bottom"].set_visible(False)
    high.tick_params(bottom=False)
    look = {"marker": [(-1, -0.6), (1, 0.6)], "markersize": 8, "linestyle": "none"}
    look |= {"color": "black", "clip_on": False}
    high.plot([0], [0], transform=high.transAxes, **look)
    low.plot([0], [1], transform=low.transAxes, **look)


TELLS = {  # by what the four experiments and the checksum find: what a row shows
    ("no gap", "no gap", "no gap", "no gap", "the same"): "all tests agree",
    ("no gap", "gap", "gap", "no gap", "weights differ"): "no gap at rate 0,\nand a gap at rest",
    ("no gap", "gap", "no gap", "no gap", "weights differ"): "a gap in training,\nand none at rest",
    ("gap", "gap", "gap", "no gap", "weights differ"): "a gap at rate 0,\nnone with one generator",
    ("gap", "gap", "gap", "gap", "buffers differ"): "always a gap,\nand only buffers differ",
    ("gap", "gap", "gap", "gap", "weights differ"): "always a gap,\nand weights differ",
}
QUIET = ("climbs", "no gap", "the same")  # what looks right


def verdicts(table: Mapping[str, Sequence[str]]) -> None:
    """Which witness sees which bug: a field for each, coloured where something looks wrong.

    Args:
        table: for each system, words on its reward, its gap in four experiments, and, where there
            is one, its checksum.
    """
    title = "Coloured: this test finds something wrong. Grey: it finds nothing wrong"
    axes = show.style.axes(4.3, title)
    axes.axis("off")
    lefts, wide = (0.95, 2.1, 3.15, 4.2, 5.25, 6.4), (1.05, 1.0, 1.0, 1.0, 1.0, 1.5)
    heads = ("reward in\ntraining", "1: at learning\nrate 0", "2: training,\n30 updates")
    heads += ("3: then\nat rest", "4: rate 0, one\ngenerator", "checksum in\ntraining")
    columns = max(map(len, table.values()))
    fields = list(zip(lefts, wide, heads, strict=True))[:columns]
    answered = len(fields) == len(heads)  # beside four experiments alone, the reader finds it
    axes.set(xlim=(0, 10.3 if answered else 6.35), ylim=(len(table) + 0.05, -1.55))
    for left, width, head in fields:
        show.style.centred(axes, left + width / 2, -0.42, head, fontsize=8)
    words = "gap, in the last update of experiment"
    show.style.centred(axes, 4.15, -1.25, words, weight="bold")
    axes.plot([2.1, 6.2], [-0.95, -0.95], color=show.style.GREY, linewidth=1)
    if answered:
        axes.text(8.05, -0.42, "what tells it apart", weight="bold", fontsize=9, va="center")
    for row, (colour, (bug, found)) in enumerate(zip(LINES, table.items(), strict=True)):
        look = {"color": colour, "weight": "bold", "va": "center", "ha": "right", "fontsize": 10}
        axes.text(0.85, row + 0.45, bug, **look)
        for (left, width, _), words in zip(fields, found, strict=True):
            hue, share = ("#999999", 0.15) if words in QUIET else (palette.WRONG, palette.GROUND)
            show.style.box(axes, left, row, width, 0.9, **palette.ground(hue, share))
            weight = "normal" if words in QUIET else "bold"
            show.style.centred(axes, left + width / 2, row + 0.45, words, weight=weight)
        if answered:
            axes.text(8.05, row + 0.45, TELLS.get(tuple(found[1:]), ""), va="center", fontsize=9)
    plt.show()


def tree() -> None:
    """One tree over eight leaves, shared by 2 and by 4 ranks."""
    title = "The same seven additions in the same order, whoever does them"
    for axes, ranks in zip(show.style.panels(1, 2, 2.8, title, bare=True), (2, 4), strict=True):
        axes.set(xlim=(-0.6, 7.6), ylim=(-0.5, 3.6))
        axes.set_title(f"{ranks} ranks", loc="left", fontsize=10)
        places = [[float(leaf) for leaf in range(8)]]
        while len(places[-1]) > 1:
            row = places[-1]
            places.append([(a + b) / 2 for a, b in zip(row[::2], row[1::2], strict=True)])
        for level, row in enumerate(places):
            for number, x in enumerate(row):
                owners = {leaf * ranks // 8 for leaf in _leaves(level, number)}
                colour = palette.colour(min(owners)) if len(owners) == 1 else "#999999"
                words = f"{number}" if level == 0 else "+"
                if level:
                    for child in places[level - 1][2 * number : 2 * number + 2]:
                        axes.plot([x, child], [level, level - 1], color="#999999", zorder=0)
                look = palette.ground(colour)
                show.style.box(axes, x - 0.3, level - 0.25, 0.6, 0.5, zorder=2, **look)
                show.style.centred(axes, x, level, words)
        axes.text(7.5, 2.8, "grey: on\nall ranks", ha="right", fontsize=8)
    plt.show()


def _leaves(level: int, number: int) -> range:
    return range(number * 2**level, (number + 1) * 2**level)


def precisions(rows: Sequence[Mapping[str, Any]], factor: float) -> None:
    """The gap of right engines against the tolerance, in three precisions."""
    title = "Right engines: the gap grows with the rounding, and stays below the tolerance"
    axes = show.style.axes(3.0, title, "unit roundoff u", "gap, nats")
    for t, mark in zip((1, 2, 4), "osx", strict=True):
        mine = [row for row in rows if row["t"] == t]
        xs, ys = [row["u"] for row in mine], [row["gap"] for row in mine]
        name = f"{t} generator{'s' * (t > 1)}"
        axes.plot(xs, ys, mark, color=LINES[t], fillstyle="none", label=name)
    us = sorted({row["u"] for row in rows})
    axes.plot(us, [factor * u for u in us], ":", color=show.style.GREY, label="tolerance")
    axes.set(xscale="log", yscale="log")
    axes.legend(frameon=False)
    plt.show()


def rounded(
    seeds: Sequence[Mapping[str, Mapping[str, Sequence[float]]]],
    systems: Mapping[str, str],
    limits: Mapping[str, float],
    derived: float = 0.0,
) -> None:
    """The largest or the mean gap of some systems, beside what right engines in bfloat16 have.

    Args:
        seeds: for each seed, the gaps of each system in each update, "largest" and "mean".
        systems: those to show, with their names.
        limits: for each kind of gap, a limit that is measured.
        derived: a limit for the largest gap, if it is not 0.
    """
    title = "Everything in bfloat16" if "none" in systems else "Small steps, and rounding"
    title += ". Small dots: each update; large dots: the highest of a seed"
    panels = show.style.panels(1, len(limits), 0.8 + 0.42 * (len(systems) + 1), title, sharey=True)
    bugs = [bug for bug in seeds[0] if bug != "at rest"]
    for axes, (kind, limit) in zip(panels, limits.items(), strict=True):
        for place, system in enumerate(systems):
            name = system.partition(",")[0]
            colour = LINES[bugs.index(name) if name in bugs else 0]
            for found in (found[system][kind] for found in seeds):
                shown = [gap for gap in found if gap > 1e-12]  # "late" begins with none in float64
                row = [place] * len(shown)
                axes.plot(shown, row, ".", color=colour, alpha=0.4, markersize=4)
                axes.plot(max(found), place, "o", color=colour)
        axes.set_yticks(range(len(systems)), list(systems.values()))
        axes.set(xscale="log", xlabel=f"{kind} gap, nats", ylim=(len(systems) - 0.5, -0.5))
        axes.grid(axis="y", alpha=0.3)
        steps = (1, 3) if len(limits) == 1 else (1,)  # two panels have less room for numbers
        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        if derived and kind == "largest":
            _limit(axes, derived, "tolerance", ":", "derived tolerance")
        _limit(axes, limit, "limit", "--", "measured limit: 3 times right engines at rest")
    handles = panels[0].get_legend_handles_labels()
    look = {"ncols": 2, "frameon": False, "loc": "outside lower center", "fontsize": 8}
    panels[0].figure.legend(*handles, **look)
    plt.show()


def _limit(axes: Axes, value: float, name: str, style: str, words: str) -> None:
    """A line across, with its name and value above it; `words` stand in the legend."""
    axes.axvline(value, color=show.style.GREY, linestyle=style, label=words)
    look = {"ha": "center", "va": "bottom", "fontsize": 9, "weight": "bold"}
    axes.text(value, 1.01, f"{name} {value:.2g}", transform=axes.get_xaxis_transform(), **look)


def stale(run: Run, **ways: str) -> None:
    """How well a stale gradient points, in some ways; with ratios, how many answers count."""
    title = "Gradients from old answers: three trainings, each a line"
    panels = show.style.panels(1, 1 + ("with_ratio" in ways), 3.3, title)
    colours = {"without": LINES[1], "with_ratio": LINES[2], "no_level": LINES[3]}
    for rank in sorted({r["rank"] for r in run.reports if "behind" in r}):
        rows = [r for r in run.reports if r["rank"] == rank and "behind" in r]
        xs = [row["behind"] for row in rows]
        for key, name in ways.items():
            label = None if rank else name
            panels[0].plot(xs, [row[key] for row in rows], ".-", color=colours[key], label=label)
        for axes in panels[1:]:
            axes.plot(xs, [100 * row["counts"] for row in rows], ".-", color=LINES[0])
    panels[0].set(ylabel="cosine to a fresh gradient", ylim=(-0.2, 1))
    panels[0].legend(frameon=False, loc="lower left")
    for axes in panels[1:]:
        axes.set(ylabel="effective sample size, %", ylim=(0, 105))
    for axes in panels:
        axes.set_xlabel("updates behind")
        axes.set_xscale("symlog", base=2, linthresh=1)
        axes.set_xticks(xs, xs)
        axes.minorticks_off()
        axes.set_xlim(-0.2, 36)
    plt.show()


def timeline(run: Run) -> None:
    """Who works when, in turn and overlapped."""
    title = "Five updates by engines that sleep: generating takes 0.3 s, training 0.2 s"
    for axes, mode in zip(
        show.style.panels(2, 1, 3.2, title), ("in turn", "overlapped"), strict=True
    ):
        spans = [r for r in run.reports if r.get("mode") == mode]
        for span in spans:
            row, wide = int(span["what"] == "train"), span["end"] - span["begin"]
            look = palette.ground(ROLES[span["what"]])
            show.style.box(axes, span["begin"], row, wide, 0.8, **look)
            middle = span["begin"] + wide / 2
            show.style.centred(axes, middle, row + 0.4, str(span["number"] + 1))
        axes.set(xlim=(0, 2.7), ylim=(1.9, -0.1), xlabel="time, s")
        axes.set_yticks([0.4, 1.4], ["generate", "train"])
        axes.set_title(mode, loc="left", fontsize=10)
    plt.show()
