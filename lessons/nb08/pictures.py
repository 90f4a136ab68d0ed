"""The pictures that notebook 08 alone draws."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

from course_utils import palette, show

DOCUMENTS = ("#88CCEE", "#DDCC77", "#CC6677", "#44AA99", "#AA4499", "#999933")
LINES = {
    "SGD": ("#999933", "-"),
    "AdamW": ("#AA4499", "-"),
    "AdamW, clip": ("#44AA99", "-"),
    "AdamW, skip": ("#332288", "--"),
}
GREY = show.style.GREY
EMPTY = {"facecolor": "none", "edgecolor": GREY, "hatch": "////", "linewidth": 0.6}


def packing(sizes: Sequence[int] = (10, 3, 22, 5, 7), length: int = 12) -> None:
    """Documents in rows of their own, padded; and end to end."""
    title = f"Five documents in rows of {length} tokens: padded, and packed"
    left, right = show.style.panels(1, 2, 2.9, title, bare=True)
    row = 0
    for number, size in enumerate(sizes):
        for begin in range(0, size, length):
            _tokens(left, row, 0, min(length, size - begin), number, f"document {number + 1}")
            rest = length - min(length, size - begin)
            if rest:
                show.style.box(left, length - rest, row, rest, 0.8, **EMPTY)
            row += 1
    place = 0
    for number, size in enumerate(sizes):
        words = f"document {number + 1}"
        for begin in range(place, place + size):
            if begin == place or begin % length == 0:
                end = min(place + size, (begin // length + 1) * length)
                _tokens(right, begin // length, begin % length, end - begin, number, words)
        place += size
    rest = -place % length
    show.style.box(right, length - rest, place // length, rest, 0.8, **EMPTY)
    share = 1 - sum(sizes) / (row * length)
    left.set_title(f"padded: {row} rows, {share:.0%} of them empty", loc="left", fontsize=10)
    right.set_title("packed: 4 rows, empty at the very end only", loc="left", fontsize=10)
    for axes in (left, right):
        axes.set(xlim=(-0.2, length + 0.2), ylim=(row, -0.3))
    plt.show()


def _tokens(axes: Axes, row: int, begin: int, size: int, number: int, words: str) -> None:
    """A stretch of a document in a row."""
    show.style.box(axes, begin, row, size, 0.8, **palette.ground(DOCUMENTS[number]))
    said = words if size > 4 else words.split()[1]
    show.style.centred(axes, begin + size / 2, row + 0.4, said, color="black", fontsize=8)


def reach(tables: Mapping[str, Tensor], ends: Sequence[int]) -> None:
    """Which logits move if one token changes, under two masks."""
    title = "Change one token: which logits of the row move? (red lines: a document ends)"
    every = show.style.panels(1, len(tables), 3.3, title)
    for axes, (name, table) in zip(every, tables.items(), strict=True):
        axes.imshow(table > 0, cmap="Greys", vmin=0, vmax=1.6)
        for end in ends:
            axes.axhline(end + 0.5, color=DOCUMENTS[2], lw=1.5)
            axes.axvline(end + 0.5, color=DOCUMENTS[2], lw=1.5)
        axes.set(xlabel="position of the logits", ylabel="position of the changed token")
        axes.set_title(name, loc="left", fontsize=10)
    plt.show()


def pushed(far: Mapping[str, Sequence[float]]) -> None:
    """How far one huge gradient moves the parameters, step after step."""
    title = "One huge gradient: its own step is short, but the averages remember it"
    axes = show.style.axes(2.9, title, "steps after the damaged one", "moved, in learning rates")
    for way, places in far.items():
        colour, style = LINES[way]
        axes.plot(range(len(places)), places, style, color=colour, label=way)
        axes.plot(0, places[0], "o", color=colour, ms=5)
    axes.set(ylim=(0, None))
    axes.legend(frameon=False, loc="center right", title="dot: the damaged step")
    plt.show()


def spikes(
    times: Mapping[tuple[str, str], Sequence], costs: Mapping[str, Sequence], first: int
) -> None:
    """What two damaged steps do to the gradient, to the step, and to what the model knows.

    `times`: of the norms and moves of a way, how many times as large as without damage.
    """
    title = "Two steps with damaged rows: each run beside its twin without damage, 3 seeds"
    left, right, below = show.style.mosaic("AB;CC", 5.4, title)
    steps = range(first - 8, first + 16)
    for (name, way), seeds in times.items():
        axes = left if name == "norms" else right
        for number, each in enumerate(seeds):
            label = {"label": way} if number == 0 else {}
            values = [each[step] for step in steps]
            axes.plot([step + 1 for step in steps], values, color=LINES[way][0], lw=1.3, **label)
    for axes in (left, right):
        axes.axvspan(first + 0.5, first + 2.5, color=palette.NEUTRAL, alpha=0.15, lw=0)
        axes.set(yscale="log", ylim=(0.2, 30), xlabel="step (grey: damaged)")
        axes.set_ylabel("times as long as its twin's")
        axes.set_yticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
        axes.minorticks_off()
        axes.legend(frameon=False, loc="upper left")
    left.set_title("the gradient", loc="left", fontsize=10)
    right.set_title("the step", loc="left", fontsize=10)
    for way, seeds in costs.items():
        colour, style = LINES[way]
        for number, each in enumerate(seeds):
            label = {"label": way} if number == 0 else {}
            below.plot(*zip(*each, strict=True), style, color=colour, lw=1.5, **label)
    below.axvspan(first + 0.5, first + 2.5, color=palette.NEUTRAL, alpha=0.15, lw=0)
    below.axhline(0, color=palette.NEUTRAL, lw=0.8)
    below.set(xlabel="step (grey: damaged)", ylabel="nats")
    below.set_title("the test loss, above that of the twin", loc="left", fontsize=10)
    below.legend(frameon=False, loc="upper left")
    plt.show()


def run(reports: Sequence[Mapping], rate: Callable[[int], float]) -> None:
    """The log of one run: losses, the gradient's norm, and the learning rate."""
    rows = [each for each in reports if "loss" in each]
    names = ("loss", "largest", "own", "norm")
    mean, largest, own, norm = ([x for row in rows for x in row[name]] for name in names)
    top, middle, below = show.style.panels(3, 1, 6.6, "The log of a run", sharex=True)
    steps = range(1, len(mean) + 1)
    top.plot(steps, largest, color=palette.colour(1), lw=0.8, label="largest of the ranks")
    top.plot(steps, mean, color=palette.NEUTRAL, label="mean over the ranks")
    top.plot(steps, own, color=palette.colour(0), lw=0.8, label="rank 0's own")
    found = [(row["step"], row["validation"]) for row in rows if "validation" in row]
    top.plot(*zip(*found, strict=True), "D", color="#AA4499", label="validation")
    top.set(ylabel="loss, nats")
    top.legend(frameon=False)
    middle.plot(steps, norm, color=palette.NEUTRAL, label="before clipping")
    middle.axhline(1, color="#AA4499", ls="--", lw=1, label="clipped here")
    middle.set(yscale="log", ylabel="gradient's norm (log)")
    middle.set_yticks([0.3, 1, 3], ["0.3", "1", "3"])
    middle.minorticks_off()
    middle.legend(frameon=False)
    below.plot(steps, [rate(step - 1) for step in steps], color="#44AA99")
    below.set(ylabel="learning rate", xlabel="step")
    plt.show()


def dealt(shares: Mapping[str, Sequence[Sequence[Sequence[int]]]]) -> None:
    """Who reads which place of the stream; `shares`: for each way, steps of ranks of places."""
    title = "Who reads which row? A run on 2 ranks goes on with 3 after its second step"
    every = show.style.panels(len(shares), 1, 2.9, title)
    last = 1 + max(p for steps in shares.values() for step in steps for rank in step for p in rank)
    for axes, (way, steps) in zip(every, shares.items(), strict=True):
        seen = set()
        for number, step in enumerate(steps):
            for rank, places in enumerate(step):
                for place in places:
                    seen.add(place)
                    look = palette.ground(palette.colour(rank))
                    show.style.box(axes, place, number, 0.9, 0.8, **look)
                    show.style.centred(axes, place + 0.45, number + 0.4, rank, color="black")
        end = max(seen) + 1
        for place in set(range(end)) - seen:
            show.style.box(axes, place, 0, 0.9, len(steps) - 0.2, **EMPTY)
        axes.set(xlim=(-0.2, last + 0.2), ylim=(len(steps), -0.2))
        axes.set_yticks([n + 0.4 for n in range(len(steps))], range(1, len(steps) + 1))
        axes.set_ylabel("step")
        left_out = end - len(seen)
        said = f"{left_out} rows are never read (hatched)" if left_out else "every row is read once"
        axes.set_title(f"{way}: {said}", loc="left", fontsize=10)
    every[-1].set_xlabel("place of the row in the stream; the number in a box is the rank")
    plt.show()


def padding(shares: Mapping[bool, Sequence[Sequence[int]]]) -> None:
    """Who evaluates which of 10 samples, padded and with drop_last."""
    axes = show.style.panels(1, 2, 2.2, "10 samples on 4 ranks: who evaluates which", bare=True)
    for one, (drop, every) in zip(axes, shares.items(), strict=True):
        seen = set()
        for place in range(len(every[0])):
            for rank, share in enumerate(every):
                twice, look = share[place] in seen, palette.ground(palette.colour(rank))
                seen.add(share[place])
                if twice:
                    look = {"facecolor": "none", "edgecolor": GREY, "linestyle": "--"}
                show.style.box(one, place, -rank - 1, 0.9, 0.9, **look)
                words = {} if twice else {"color": "black"}
                show.style.centred(one, place + 0.45, -rank - 0.55, share[place], **words)
        for rank in range(4):
            show.style.centred(one, -0.45, -rank - 0.55, f"rank {rank}")
        missing = sorted(set(range(10)) - seen)
        one.set(xlim=(-1, 3.2), ylim=(-4.2, 0.3))
        said = f"drop_last: samples {missing} left out" if drop else "padded: dashed counts twice"
        one.set_title(said, fontsize=10, loc="left")
    plt.show()


def batches(
    rates: Sequence[float], needed: Mapping[int, Tensor], intercept: float, critical: float
) -> None:
    """Steps for each batch and rate, and for each batch at its best rate, with the spread."""
    left, right = show.style.panels(1, 2, 3.8, "How many steps until the test loss is below 0.3?")
    sizes = list(needed)
    shades = plt.get_cmap("viridis")([0.9 * n / len(sizes) for n in range(len(sizes))])
    for shade, (batch, each) in zip(shades, needed.items(), strict=True):
        mean = each.mean(0)
        line = "o--" if batch == sizes[-1] else "o-"  # the last two nearly coincide
        left.plot(rates, mean, line, color=shade, ms=4, label=f"batch {batch}")
        for number, group in enumerate(each):  # the best rate of each experiment, side by side
            best = int(group.argmin())
            beside = rates[best] * 1.09 ** (number - (len(each) - 1) / 2)
            size = 5 if batch == sizes[-1] else 8
            left.plot(beside, group[best], "o", color=shade, ms=size, mfc="none", alpha=0.8)
    failed = {batch: each.isinf().any(0).tolist() for batch, each in needed.items()}
    some = max(n for each in failed.values() for n, fails in enumerate(each) if not fails)
    drawn = min(some + 2, len(rates))  # up to the first rate at which every batch fails
    for row, (shade, batch) in enumerate(zip(shades, sizes, strict=True)):
        crosses = [rates[n] for n in range(drawn) if failed[batch][n]]
        left.plot(crosses, [5500 / 1.3**row] * len(crosses), "x", color=shade, ms=5)
    left.text(rates[0], 7000, "cross: an experiment failed at this rate", fontsize=9, color=GREY)
    left.set(xscale="log", yscale="log", xlabel="learning rate (log)", ylabel="steps (log)")
    left.set(ylim=(20, 11000))
    left.set_xticks(rates[:drawn], [f"{rate:g}" for rate in rates[:drawn]])
    left.minorticks_off()
    left.legend(frameon=False, fontsize=9, loc="lower left", labelspacing=0.25)
    left.set_title("lines: means of 4 experiments; circles: best of each", fontsize=10, loc="left")
    best = [each.amin(1) for each in needed.values()]
    mean = [float(each.mean()) for each in best]
    spread = [[float(each.mean() - each.min()) for each in best]]
    spread += [[float(each.max() - each.mean()) for each in best]]
    right.errorbar(
        sizes, mean, spread, fmt="o", color="#AA4499", capsize=3, label="measured, range"
    )
    between = np.geomspace(sizes[0], sizes[-1], 100)
    fit, words = intercept * (1 + critical / between), f"{intercept:.0f} (1 + {critical:.0f} / B)"
    right.plot(between, fit, color="#AA4499", lw=1, label=words)
    ideal = [batch for batch in sizes if batch <= 64]
    right.plot(
        ideal,
        [intercept * critical / b for b in ideal],
        ":",
        color=palette.NEUTRAL,
        label="half for twice B",
    )
    right.axhline(intercept, color=palette.NEUTRAL, ls="--", lw=1, label="the fewest, $S_{min}$")
    right.axvline(critical, color="#44AA99", lw=1, label="critical batch size")
    right.set(xscale="log", yscale="log", xlabel="batch B of all ranks (log)", ylim=(10, 2000))
    right.set_xticks(sizes, sizes)
    right.minorticks_off()
    right.legend(frameon=False, fontsize=8.5, loc="upper right")
    right.set_title("the bend", fontsize=10, loc="left")
    plt.show()


def eight(gains: Mapping[str, Mapping[int, tuple[float, float]]]) -> None:
    """How many times as fast N GPUs are as one: nothing hidden to as much as possible hidden."""
    title = "Tokens per second: nothing hidden (dashed), and all that can be (solid)"
    axes = show.style.axes(3.6, title, "GPUs", "times one GPU")
    looks = ("#44AA99", "#AA4499", "#999933", "#332288")
    widths = (6.0, 2.5, 1.5, 1.5)  # lines that coincide lie on each other, the widest below
    for colour, width, (name, each) in zip(looks, widths, gains.items(), strict=False):
        ranks = list(each)
        low, high = zip(*each.values(), strict=True)
        axes.fill_between(ranks, low, high, color=colour, alpha=0.2, lw=0)
        axes.plot(ranks, low, "--", lw=1, color=colour)
        axes.plot(ranks, high, "-", lw=width, color=colour, label=name)
        axes.plot(ranks, high, "o", ms=4, color=colour)
    axes.plot(ranks, ranks, ":", lw=1.5, color="black", label="N times")
    axes.set_xticks(ranks, ranks)
    axes.legend(frameon=False, loc="upper left")
    plt.show()
