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
    said = f"padded: {row} rows, {share:.0%} of the tokens are padding"
    left.set_title(said, loc="left", fontsize=10)
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


def padding(shares: Mapping[bool, Sequence[Sequence[int]]], right: Tensor) -> None:
    """Who evaluates which of the samples, padded and with drop_last; `right` (n,), bool."""
    title = f"{len(right)} samples on 4 ranks: who evaluates which?"
    every = show.style.panels(1, 2, 2.6, title, bare=True)
    for one, (drop, shared) in zip(every, shares.items(), strict=True):
        seen = []
        for place in range(len(shared[0])):
            for rank, share in enumerate(shared):
                look = palette.ground(palette.colour(rank)) | {"linewidth": 1.2}
                look |= {"linestyle": "--"} if share[place] in seen else {}
                _sample(one, place, rank, share[place], right, look)
                seen.append(share[place])
        for place, left_out in enumerate(sorted(set(range(len(right))) - set(seen))):
            _sample(one, len(shared[0]) + 0.3, place, left_out, right, EMPTY)
        for rank in range(4):
            show.style.centred(one, -0.5, rank + 0.45, f"rank {rank}")
        wrong = sum(not right[sample] for sample in seen)
        one.set(xlim=(-0.9, 3.4), ylim=(4.1, -0.2))
        said = "drop_last, hatched: left out" if drop else "padded, dashed: comes again"
        one.set_title(f"{said}; {wrong} of {len(seen)} wrong", fontsize=10, loc="left")
    plt.show()


def _sample(axes: Axes, x: float, row: float, sample: int, right: Tensor, look: Mapping) -> None:
    """One sample in its box, with a cross if the model is wrong about it."""
    show.style.box(axes, x, row, 0.9, 0.9, **look)
    words = {"color": "black", "fontsize": 10}
    if look is EMPTY:
        words["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    elif not right[sample]:
        words |= {"color": palette.WRONG, "weight": "bold"}
    said = f"{sample}" if right[sample] else f"{sample}: wrong"
    show.style.centred(axes, x + 0.45, row + 0.45, said, **words)


def batches(
    rates: Sequence[float], needed: Mapping[int, Tensor], intercept: float, critical: float
) -> None:
    """Steps for each batch and rate, and for each batch at its best rate, with the spread."""
    title = "How many steps until the test loss is below 0.3?"
    left, right = show.style.panels(1, 2, 4.2, title)
    sizes = list(needed)
    shades = plt.get_cmap("viridis")([0.9 * n / len(sizes) for n in range(len(sizes))])
    for shade, (batch, each) in zip(shades, needed.items(), strict=True):
        kept = [n for n in range(len(rates)) if not each[:, n].isinf().any()]
        x, mean = [rates[n] for n in kept], each.mean(0)[kept]
        left.fill_between(x, each.amin(0)[kept], each.amax(0)[kept], color=shade, alpha=0.2, lw=0)
        left.plot(x, mean, "--" if batch == sizes[-1] else "-", color=shade, lw=1.6)
        best = int(mean.argmin())
        left.plot(x[best], mean[best], "o", color=shade, ms=8)
        last = batch in sizes[-2:]  # these two begin at the same place: name them at their ends
        at, way = (-1, 1) if last else (0, -1)
        up = {sizes[-2]: 7, sizes[-1]: -7}.get(batch, 0)
        look = {"color": shade, "va": "center", "ha": "left" if last else "right"}
        words = {"xytext": (8 * way, up), "textcoords": "offset points", "fontsize": 10}
        left.annotate(f"batch {batch}", (x[at], float(mean[at])), **words, **look)
    left.set(xscale="log", yscale="log", xlabel="learning rate (log)", ylabel="steps (log)")
    left.set(xlim=(0.0062, 3.4), ylim=(20, 3000))
    drawn = [rate for rate in rates if 0.02 < rate < 1]
    left.set_xticks(drawn, [f"{rate:g}" for rate in drawn], fontsize=9)
    left.minorticks_off()
    said = "dot: the best rate\nband: four experiments\nno line: one was given up"
    left.text(0.007, 22, said, fontsize=9, color=GREY, va="bottom")
    left.set_title("at each learning rate", fontsize=10, loc="left")
    best = [each.amin(1) for each in needed.values()]
    mean = [float(each.mean()) for each in best]
    spread = [[float(each.mean() - each.min()) for each in best]]
    spread += [[float(each.max() - each.mean()) for each in best]]
    between = np.geomspace(sizes[0], sizes[-1], 100)
    fit, words = intercept * (1 + critical / between), f"{intercept:.0f} (1 + {critical:.0f} / B)"
    right.plot(between, fit, color="#AA4499", lw=1.5, label=f"formula: {words}")
    right.errorbar(
        sizes, mean, spread, fmt="o", color="#AA4499", capsize=3, label="measured, with the range"
    )
    ideal = np.geomspace(sizes[0], 2 * critical, 2)
    look = {"color": palette.NEUTRAL, "lw": 1.3}
    right.plot(ideal, intercept * critical / ideal, ":", **look)
    right.axhline(intercept, ls="--", **look)
    words = {"fontsize": 9, "color": GREY}
    right.text(1, intercept * 0.93, "dashed: a larger\nbatch saves nothing", va="top", **words)
    right.text(1, 55, "dotted: twice the\nbatch, half the steps", **words)
    right.plot([critical] * 2, [10, intercept * 2], color="#44AA99", lw=1.5)
    right.plot(critical, intercept, "D", color="#44AA99", ms=6)
    said = f"critical batch size:\n{critical:.0f} images"
    right.text(critical * 0.88, 10.8, said, fontsize=9, ha="right", va="bottom")
    right.set(xscale="log", yscale="log", xlabel="batch B of all ranks (log)", ylim=(10, 3000))
    right.set_xticks(sizes, sizes)
    right.minorticks_off()
    right.legend(frameon=False, fontsize=9, loc="upper right")
    right.set_title("at the best learning rate", fontsize=10, loc="left")
    plt.show()


def optimizers(found: Mapping[str, tuple[Sequence[float], Mapping[int, Tensor], tuple]]) -> None:
    """Steps at the best rate, and how the best rate grows, for each optimizer.

    `found`: the rates, the steps for each batch (experiments, rates), and the formula's numbers.
    """
    title = "Steps until the test loss is below 0.3, with two optimizers"
    left, right = show.style.panels(1, 2, 4.2, title)
    for name, (rates, needed, (least, critical)) in found.items():
        sizes, color = list(needed), LINES[name][0]
        mark = "o" if name == "SGD" else "s"
        shift = 0.96 if name == "SGD" else 1.04  # so that two ranges at one batch don't hide
        places = [size * shift for size in sizes]
        steps = [each.amin(1) for each in needed.values()]
        mean = [float(each.mean()) for each in steps]
        left.plot(places, mean, mark, color=color, ms=6, label=f"{name}, measured")
        between = np.geomspace(sizes[0], sizes[-1], 100)
        left.plot(between, least * (1 + critical / between), color=color, lw=1.5)
        left.plot([critical] * 2, [4, 2 * least], color=color, lw=1.2, ls=":")
        said = f"bend: {critical:.0f}"
        left.text(critical * 0.9, 4.4, said, fontsize=9, ha="right", va="bottom", color=color)
        best = np.array([[rates[n] for n in each.argmin(1).tolist()] for each in needed.values()])
        factors = best / best[0]  # (batches, experiments)
        middle = np.exp(np.log(factors).mean(1))
        spread = [middle - factors.min(1), factors.max(1) - middle]
        look = {"color": color, "capsize": 3, "ms": 6, "lw": 1.5}
        right.errorbar(places, middle, spread, fmt=f"{mark}-", label=name, **look)
    sizes = np.array(sizes)
    look = {"color": palette.NEUTRAL, "lw": 1.3}
    right.plot(sizes, sizes**0.5, "--", label="root of the batch", **look)
    right.plot(sizes[:4], sizes[:4], ":", label="as the batch", **look)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="batch B of all ranks (log)")
        axes.set_xticks(sizes, sizes)
    left.set(ylim=(4, 3000))
    right.set_yticks([1, 2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64])
    for axes in (left, right):
        axes.minorticks_off()
    left.legend(frameon=False, fontsize=9, loc="upper right")
    right.legend(frameon=False, fontsize=9, loc="upper left")
    left.set_title("steps at the best learning rate (log)", fontsize=10, loc="left")
    right.set_title("best rate, in those of batch 1 (log)", fontsize=10, loc="left")
    plt.show()


def eight(
    seconds: Mapping[str, tuple[float, float]], gains: Mapping[str, tuple[float, float]]
) -> None:
    """What eight GPUs compute and send in a step, and how many times one GPU they are worth.

    `seconds`: of computing, and of the message; `gains`: nothing hidden, and all that can be.
    """
    title = "One step of the example on eight GPUs, over three links"
    left, right = show.style.panels(1, 2, 3.4, title, sharey=True)
    looks = [palette.ACTIVITY["forward"], palette.ACTIVITY["message"]]
    for number, name in enumerate(("computing", "the message")):
        times = [1000 * each[number] for each in seconds.values()]
        places = [row + 0.4 * number - 0.2 for row in range(len(times))]
        left.barh(places, times, 0.36, label=name, **palette.ground(looks[number], 1.0))
        for place, time in zip(places, times, strict=True):
            left.text(time + 12, place, f"{time:.0f} ms", va="center", fontsize=9)
    left.set(xlim=(0, 900), xlabel="milliseconds of one step")
    left.set_yticks(range(len(seconds)), [name.replace(", ", ",\n") for name in seconds])
    left.legend(frameon=False, loc="upper right", fontsize=9)
    left.set_title("computing, and the message", loc="left", fontsize=10)
    left.invert_yaxis()
    for row, (low, high) in enumerate(gains.values()):
        right.plot([low, high], [row, row], color="#AA4499", lw=7, solid_capstyle="butt")
        right.plot([low], [row], "|", color="#AA4499", ms=16, mew=2)
        right.plot([high], [row], "|", color="#AA4499", ms=16, mew=2)
        said = f"{low:.2g} to {high:.2g}"
        look = {"ha": "right"} if high > 5 else {"ha": "left"}
        right.text(low - 0.25 if high > 5 else max(high, 1) + 0.25, row, said, va="center", **look)
    for times, words in ((1, "one GPU"), (8, "eight times")):
        right.axvline(times, color=palette.NEUTRAL, ls=":", lw=1.3, zorder=0)
        right.text(times, -0.58, words, ha="center", va="bottom", fontsize=9, color=GREY)
    right.set(xlim=(0, 8.9), xlabel="tokens per second, times one GPU")
    said = "left end: nothing hidden\nright end: all that fits\nbehind backward"
    right.text(3.95, 2, said, va="center", fontsize=9, color=GREY)
    right.set_title("worth how many GPUs?", loc="left", fontsize=10, pad=16)
    plt.show()


def to_a_loss(speedups: Mapping[str, Mapping[float, Sequence[float]]]) -> None:
    """How much sooner eight GPUs reach a loss than one, for 1, 2, 3 and so on micro-batches.

    `speedups`: for each link and loss.
    """
    title = "Calculated: one GPU's time to a loss, divided by the time of eight GPUs"
    every = show.style.panels(1, len(speedups), 3.6, title, sharey=True)
    for axes, (link, of_loss) in zip(every, speedups.items(), strict=True):
        for number, (loss, values) in enumerate(of_loss.items()):
            colour = ("#88CCEE", "#332288", "#AA4499")[number]
            places = range(1, len(values) + 1)
            axes.plot(places, values, color=colour, lw=1.8, label=f"loss {loss} nats")
        axes.axhline(1, color=palette.NEUTRAL, ls="--", lw=1.3)
        axes.set(xscale="log", yscale="log", ylim=(0.2, 10), xlim=(0.9, 72))
        ticks = [2**power for power in range(7)]
        axes.set_xticks(ticks, ticks)
        axes.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
        axes.minorticks_off()
        axes.set_xlabel("micro-batches in a step (log)")
        axes.set_title(f"over {link}", loc="left", fontsize=10)
    left, right = every
    left.set_ylabel("speedup to the loss (log)")
    words = {"fontsize": 9, "color": GREY}
    left.text(1, 1.2, "above the dashes,\neight GPUs are sooner", va="bottom", **words)
    left.text(2.3, 0.3, "too many messages", **words)
    left.text(68, 0.3, "too many tokens", ha="right", **words)
    right.text(1, 0.92, "below the dashes,\none GPU is sooner", va="top", **words)
    right.text(1, 3.3, "nearly all messages\nare hidden", va="top", **words)
    right.text(68, 4.3, "too many tokens", ha="right", **words)
    left.legend(frameon=False, loc="upper left", fontsize=9)
    plt.show()
