"""The pictures that notebook 12 alone draws."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from course_utils import palette, show
from nbtorchrun.runs import Run

GREY = show.style.GREY
EXPERTS = ("#AA4499", "#44AA99", "#999933", "#6699CC")  # no rank has these colours
WAYS = {"none": ("#444444", "-"), "loss": ("#AA4499", "--"), "bias": ("#44AA99", "-.")}
WAYS["plain"] = ("#999933", ":")
NAMES = {"none": "8 experts, no balance", "loss": "8 experts, auxiliary loss"}
NAMES |= {"bias": "8 experts, bias", "plain": "one expert for every token"}


def router(scores: np.ndarray, chosen: np.ndarray, capacity: int | None = None) -> None:
    """What the router says of each token, which experts it chooses, and who finds room.

    Args:
        scores: (n, E), rows that add up to 1.
        chosen: (n, k), the experts of each token.
        capacity: how many choices an expert accepts; None is all of them.
    """
    tokens, experts = scores.shape
    even = chosen.size / experts
    title = f"{chosen.shape[1]} experts for each token, "
    title += f"{capacity} places for each expert" if capacity else "and their lines are not even"
    left, right = show.style.panels(1, 2, 3.9, title, bare=True, width_ratios=(1.1, 1))
    left.set(xlim=(-1.7, experts + 0.1), ylim=(tokens + 0.1, -1.3))
    show.style.centred(left, experts / 2, -1.0, "score of each expert: a row adds up to 1")
    for expert in range(experts):
        show.style.centred(left, expert + 0.5, -0.3, f"expert {expert}", fontsize=8)
        for token in range(tokens):
            score = scores[token, expert]
            look = palette.ground(EXPERTS[expert % 4], min(palette.GROUND, 0.05 + 0.55 * score))
            look["edgecolor"] = "white"
            if expert in chosen[token]:
                look |= {"edgecolor": "black", "linewidth": 2.0, "zorder": 3}
            show.style.box(left, expert + 0.04, token + 0.06, 0.92, 0.88, **look)
            weight = "bold" if expert in chosen[token] else "normal"
            at = expert + 0.5, token + 0.5
            show.style.centred(left, *at, f"{score:.2f}", fontsize=8, zorder=4, weight=weight)
    for token in range(tokens):
        show.style.centred(left, -0.8, token + 0.5, f"token {token}", fontsize=8)
    counts = [int((chosen == expert).sum()) for expert in range(experts)]
    line = capacity or even
    deepest = max(*counts, line)
    right.set(xlim=(-0.2, experts + 1.2), ylim=(deepest + 0.4, -1.3))
    show.style.centred(right, experts / 2, -1.0, "who comes to each expert, in order")
    for expert in range(experts):
        show.style.centred(right, expert + 0.5, -0.3, f"expert {expert}", fontsize=8)
        for place, token in enumerate(np.flatnonzero((chosen == expert).any(1))):
            full = capacity is not None and place >= capacity
            look = palette.ground(EXPERTS[expert % 4])
            if full:
                look = {"facecolor": "white", "edgecolor": palette.WRONG, "hatch": "///", "lw": 1}
            show.style.box(right, expert + 0.06, place + 0.08, 0.88, 0.84, **look)
            ground = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"} if full else None
            at = expert + 0.5, place + 0.5
            show.style.centred(right, *at, str(token), zorder=4, fontsize=8, bbox=ground)
    right.plot([0, experts], [line] * 2, color="black", lw=1.5)
    words = f"an even\nshare: {even:g}"
    if capacity:
        words = f"{capacity} places:\nwhoever comes\nlater is dropped"
    right.text(experts + 0.08, line, words, fontsize=8, va="center")
    plt.show()


STAGES = ("in the order\nof the text", "sorted by\ndestination", "where the\nexperts are")
STAGES += ("sent back", "in the order\nof the text")


def journey(destinations: Sequence[Sequence[int]]) -> None:
    """Every token from its place in the text to its expert's rank, and back again.

    Args:
        destinations: for each rank, the rank that each of its tokens goes to.
    """
    ranks = len(destinations)
    own = [[(rank, i, to) for i, to in enumerate(each)] for rank, each in enumerate(destinations)]
    ordered = [sorted(each, key=lambda token: token[2]) for each in own]
    came = [[t for each in ordered for t in each if t[2] == rank] for rank in range(ranks)]
    tall = max(len(each) for each in own + came)
    title = "There and back: the colour is a token's own rank, a thick arrow leaves a rank"
    axes = show.style.axes(1.1 + 0.27 * ranks * (tall + 1), title)
    axes.axis("off")
    axes.set(xlim=(-1.1, 9.2), ylim=(ranks * (tall + 0.8) - 1.2, -1.3))
    where: list[dict] = []
    for stage, held in enumerate((own, ordered, came, ordered, own)):
        left, places = 2.0 * stage, {}
        show.style.centred(axes, left + 0.45, -0.75, STAGES[stage], fontsize=8)
        for rank, tokens in enumerate(held):
            for row, token in enumerate(tokens):
                top = rank * (tall + 0.8) + row
                source, number, to = token
                look = palette.ground(palette.colour(source))
                show.style.box(axes, left, top + 0.06, 0.9, 0.88, **look)
                words = f"{chr(97 + number)} → {to}" if stage < 2 else chr(97 + number)
                words = words.upper() if stage > 2 else words
                show.style.centred(axes, left + 0.45, top + 0.5, words, fontsize=8)
                places[token] = top + 0.5
        where.append(places)
    for stage in range(4):
        for token, start in where[stage].items():
            end, leaves = where[stage + 1][token], token[0] != token[2]
            sent = stage in (1, 2)
            look = {"arrowstyle": "->", "color": palette.colour(token[0]) if sent else "#AAAAAA"}
            look |= {"lw": 1.6 if sent and leaves else 0.8}
            ends = (2.0 * stage + 0.93, start), (2.0 * stage + 1.97, end)
            axes.annotate("", ends[1], ends[0], arrowprops=look)
    for rank, tokens in enumerate(own):
        middle = rank * (tall + 0.8) + tall / 2
        words = f"rank {rank}" + ("\nhas no\ntokens" if not tokens else "")
        show.style.centred(axes, -0.65, middle, words, fontsize=8)
        if rank:
            line = rank * (tall + 0.8) - 0.4
            axes.plot([-1.1, 9.0], [line] * 2, color="#CCCCCC", lw=0.8)
    plt.show()


CALLS = {  # title: for each rank, the experts whose gradients it hands to the all-reduce, in order
    "rank 1 lacks the last expert": ((0, 1, 2), (0, 1)),
    "each rank lacks another expert": ((0, 1), (0, 2)),
}


def pairing() -> None:
    """Which all-reduce of rank 0 is matched with which of rank 1."""
    title = "All-reduces are matched by their order, not by what they carry"
    every = show.style.panels(1, 2, 2.7, title, bare=True)
    for axes, (name, calls) in zip(every, CALLS.items(), strict=True):
        axes.set(xlim=(-1.1, 4.1), ylim=(3.4, -0.6))
        axes.set_title(name, loc="left", fontsize=9)
        for rank, experts in enumerate(calls):
            top = 0.1 + 1.9 * rank
            show.style.centred(axes, -0.6, top + 0.4, f"rank {rank}", fontsize=9)
            for order, expert in enumerate(experts):
                look = palette.ground(EXPERTS[expert])
                show.style.box(axes, 1.35 * order, top, 1.1, 0.8, **look)
                show.style.centred(axes, 1.35 * order + 0.55, top + 0.4, f"expert {expert}")
        for order in range(3):
            pair = [each[order] if order < len(each) else None for each in calls]
            middle = 1.35 * order + 0.55
            if None not in pair:
                same = pair[0] == pair[1]
                look = {"arrowstyle": "<->", "lw": 1.2 if same else 2.2, "shrinkA": 0, "shrinkB": 0}
                look["color"] = GREY if same else palette.WRONG
                axes.annotate("", (middle, 1.96), (middle, 0.94), arrowprops=look)
                words = "" if same else "added to each other"
                show.style.centred(axes, middle + 0.1, 3.1, words, color=palette.WRONG)
            elif pair != [None, None]:
                show.style.centred(axes, middle, 1.5, "waits\nin vain", color=palette.WRONG)
    show.style.centred(every[0], 1.9, 3.1, "call 1, call 2, call 3 of each rank", color=GREY)
    plt.show()


def balance(run: Run, plain: Run) -> None:
    """How busy the busiest expert is, and the loss, step by step, for each way and seed.

    Args:
        run: its rank 0 reported `balance`, `seed`, `step`, `busiest` and `loss`.
        plain: the same of a layer with one expert.
    """
    found: dict[tuple[str, int], list] = {}
    for each in run.ranks[0].reports:
        found.setdefault((each["balance"], each["seed"]), []).append(each)
    for each in plain.ranks[0].reports:
        found.setdefault(("plain", each["seed"]), []).append(each)
    title = "Balance evens the work; in 150 steps the training loss is higher (three seeds)"
    left, right = show.style.panels(1, 2, 3.3, title)
    for (way, seed), rows in found.items():
        hue, dash = WAYS[way]
        look = {"color": hue, "ls": dash, "lw": 1.3, "label": NAMES[way] if seed == 0 else None}
        every = ((left, "busiest"), (right, "loss"))
        for axes, key in every[way == "plain" :]:  # a single expert is always even
            values = np.array([row[key] for row in rows])
            width = min(15, len(values))
            smooth = np.convolve(values, np.ones(width) / width, "valid")
            axes.plot(np.arange(len(smooth)) + width, smooth, **look)
    left.axhline(1, color=GREY, lw=0.8)
    left.text(20, 1.03, "all experts equally busy", fontsize=8, color=GREY, va="bottom")
    words = "tokens of the busiest expert\n(even shares, mean of 15 steps)"
    left.set(xlabel="step", ylabel=words, ylim=(0.8, None))
    right.set(xlabel="step", ylabel="training loss\n(log scale, mean of 15 steps)", yscale="log")
    right.set_yticks((0.1, 0.2, 0.5, 1, 2), ("0.1", "0.2", "0.5", "1", "2"))
    right.minorticks_off()
    left.set_title("how busy the busiest expert is", loc="left", fontsize=9)
    right.set_title("training loss", loc="left", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    plt.show()


HOLDS = ("dense layers", "router", "experts")


def grid(experts: Sequence[Sequence[str]]) -> None:
    """Four ranks: who shares the experts, and who holds the same ones.

    Args:
        experts: for each row of ranks, the experts that each rank holds, as words.
    """
    title = "Four ranks, e = 2: tokens travel in rows, experts' gradients are added in columns"
    axes = show.style.axes(3.7, title)
    axes.axis("off")
    axes.set(xlim=(-0.4, 11.6), ylim=(6.3, -0.5))
    ranks = 0
    for row, line in enumerate(experts):
        for column, held in enumerate(line):
            left, top = 0.3 + 3.8 * column, 0.2 + 3.0 * row
            look = {"facecolor": "none", "edgecolor": palette.colour(ranks), "linewidth": 2}
            show.style.box(axes, left, top, 2.6, 2.2, **look)
            axes.text(left + 0.1, top + 0.27, f"rank {ranks}", fontsize=9, va="center")
            for place, name in enumerate((*HOLDS[:2], held)):
                hue = EXPERTS[2 * column] if place == 2 else "#999999"
                at = top + 0.5 + 0.55 * place
                show.style.box(axes, left + 0.15, at, 2.3, 0.45, **palette.ground(hue))
                show.style.centred(axes, left + 1.3, at + 0.23, name, fontsize=8)
            ranks += 1
        middle = 0.2 + 3.0 * row + 1.85
        _both(axes, (2.95, middle), (4.05, middle), "tokens", (3.5, middle - 0.25))
    for column in range(2):
        x = 0.3 + 3.8 * column + 1.3
        _both(axes, (x, 2.45), (x, 3.15), "gradients of the\nsame experts", (x + 1.25, 2.8))
    words = (
        "Every expert exists twice.\nEvery token is on one rank.\n\n"
        "grey: held by all four ranks\nviolet, olive: held by the\ntwo ranks of a column"
    )
    axes.text(7.6, 2.8, words, fontsize=9, va="center")
    plt.show()


def _both(axes: Axes, start: tuple, end: tuple, words: str, at: tuple) -> None:
    look = {"arrowstyle": "<->", "color": GREY, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=look)
    show.style.centred(axes, *at, words, fontsize=8, color=GREY)
