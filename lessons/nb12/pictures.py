"""The pictures that notebook 12 alone draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from course_utils import palette, show
from nbtorchrun.runs import Run

GREY = show.style.GREY
EXPERTS = ("#AA4499", "#44AA99", "#999933", "#6699CC")  # no rank has these colours
WAYS = {"none": ("#444444", "-"), "loss": ("#AA4499", "--"), "bias": ("#44AA99", "-.")}
WAYS["plain"] = ("#999933", ":")
NAMES = {"none": "no balance", "loss": "auxiliary loss, 0.1", "bias": "bias, 0.01 per step"}


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


def crossings() -> None:
    """One token's row and its gradient, from its rank to its expert's and back, over time."""
    title = "One token, one step: four crossings"
    axes = show.style.axes(2.3, title)
    axes.axis("off")
    axes.set(xlim=(-1.75, 10.4), ylim=(3.15, -0.75))
    for at, words in ((0.0, "the token's\nrank"), (2.2, "its expert's\nrank")):
        hue = palette.colour(0 if at == 0 else 1)
        show.style.box(axes, -0.35, at, 10.65, 0.8, **palette.ground(hue))
        show.style.centred(axes, -1.05, at + 0.4, words)
    places = ((0.9, "row", "out"), (3.3, "result", "back"))
    places += ((5.9, "gradient of\nthe result", "out"), (8.3, "gradient of\nthe row", "back"))
    for number, (x, words, way) in enumerate(places, 1):
        ends = ((x, 2.15), (x, 0.85)) if way == "out" else ((x, 0.85), (x, 2.15))
        look = {"arrowstyle": "->", "lw": 2.2, "shrinkA": 0, "shrinkB": 0, "color": "black"}
        axes.annotate("", *ends, arrowprops=look)
        axes.text(x + 0.15, 1.5, words, fontsize=9, va="center")
        axes.text(x - 0.15, 1.5, str(number), fontsize=11, va="center", ha="right", weight="bold")
    for x, words in ((2.1, "expert works"), (7.1, "backward of expert")):
        show.style.centred(axes, x, 2.6, words, fontsize=9)
    show.style.centred(axes, 4.6, 0.4, "gate, loss, backward of gate", fontsize=9)
    for left, right, words in ((0.3, 4.4, "forward"), (4.8, 10.0, "backward")):
        axes.plot([left, right], [-0.2] * 2, color=GREY, lw=1)
        show.style.centred(axes, (left + right) / 2, -0.5, words, fontsize=9)
    plt.show()


CALLS = {  # title: for each rank, expert -> the gradient that it hands to its all-reduce, in order
    "rank 1 lacks the last expert": ({0: 1, 1: 20, 2: 300}, {0: 4_000, 1: 50_000}),
    "each rank lacks another expert": ({0: 1, 1: 20}, {0: 4_000, 2: 600_000}),
}


def pairing() -> None:
    """Which all-reduce of rank 0 is matched with which of rank 1, and what comes out."""
    title = "All-reduces are matched by their order, not by what they carry"
    every = show.style.panels(1, 2, 2.9, title, bare=True)
    for axes, (name, calls) in zip(every, CALLS.items(), strict=True):
        axes.set(xlim=(-1.1, 4.1), ylim=(3.5, -0.9))
        axes.set_title(name, loc="left", fontsize=9)
        for rank, given in enumerate(calls):
            top = 0.1 + 1.9 * rank
            show.style.centred(axes, -0.6, top + 0.4, f"rank {rank}", fontsize=9)
            for order, (expert, gradient) in enumerate(given.items()):
                look = palette.ground(EXPERTS[expert])
                show.style.box(axes, 1.35 * order, top, 1.1, 0.8, **look)
                words = f"expert {expert}\n{gradient:,}"
                show.style.centred(axes, 1.35 * order + 0.55, top + 0.4, words)
        for order in range(max(map(len, calls))):
            pair = [list(given.items())[order : order + 1] for given in calls]
            middle = 1.35 * order + 0.55
            show.style.centred(axes, middle, -0.3, f"call {order + 1}", fontsize=8, color=GREY)
            if not all(pair):
                words = "waits\nin vain"
                show.style.centred(axes, middle, 1.5, words, fontsize=9, color=palette.WRONG)
                continue
            ((one, first),), ((other, second),) = pair
            hue = GREY if one == other else palette.WRONG
            look = {"arrowstyle": "<->", "lw": 1.2 if one == other else 2.2, "color": hue}
            look |= {"shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (middle, 1.96), (middle, 0.94), arrowprops=look)
            words = f"{first + second:,}"
            axes.text(middle + 0.1, 1.45, words, fontsize=9, color=hue, va="center")
            if one != other:
                words = f"each rank takes\n{first + second:,} for the\ngradient of its expert"
                place = {"fontsize": 9, "color": hue, "va": "center"}
                axes.text(middle + 0.75, 2.4, words, **place)
    plt.show()


def moved(frames: Mapping[int, tuple[Sequence[int], Sequence[float]]]) -> None:
    """Which expert each token chooses after some steps of the bias, and how large the bias is.

    Args:
        frames: step -> the expert of each token, and the bias of each expert. In the first, every
            bias is zero, so each token is at the expert that has its best score.
    """
    first, _ = next(iter(frames.values()))
    experts, even = len(EXPERTS), len(first) / len(EXPERTS)
    deepest = max(max(np.bincount(chosen)) for chosen, _ in frames.values())
    largest = max(abs(value) for _, biases in frames.values() for value in biases)
    title = "The bias moves tokens to empty experts (colour: the expert of a token's best score)"
    look = {"height_ratios": (2.4, 1), "sharey": "row"}
    panels = show.style.panels(2, len(frames), 4.8, title, bare=True, **look)
    for column, (step, (chosen, biases)) in enumerate(frames.items()):
        top, bottom = panels[column], panels[len(frames) + column]
        top.set(xlim=(-0.15, experts + 0.15), ylim=(deepest + 0.2, -0.9))
        top.set_title("before the first step" if not step else f"after {step} steps", fontsize=10)
        for expert in range(experts):
            show.style.centred(top, expert + 0.5, -0.45, f"expert\n{expert}", fontsize=8)
            for place, token in enumerate(np.flatnonzero(np.array(chosen) == expert)):
                look = palette.ground(EXPERTS[first[token]])
                look["linewidth"] = 2.2 if first[token] != expert else 1.0
                show.style.box(top, expert + 0.07, place + 0.08, 0.86, 0.84, **look)
                show.style.centred(top, expert + 0.5, place + 0.5, str(token), fontsize=8)
        top.plot([0, experts], [even] * 2, color="black", lw=1.5, zorder=4)
        bottom.set(xlim=(-0.15, experts + 0.15), ylim=(-1.5 * largest, 1.5 * largest))
        bottom.plot([0, experts], [0, 0], color=GREY, lw=0.8)
        for expert, value in enumerate(biases):
            bottom.bar(expert + 0.5, value, 0.6, **palette.ground(EXPERTS[expert]))
            up = 0.22 * largest if value >= 0 else -0.22 * largest
            words = f"{value:+.2f}".replace("-", "\N{MINUS SIGN}") if abs(value) > 0.001 else "0"
            show.style.centred(bottom, expert + 0.5, value + up, words, fontsize=8)
    panels[0].text(-0.2, even, "even\nshare", fontsize=8, va="center", ha="right")
    panels[len(frames)].text(-0.2, 0, "bias", fontsize=9, va="center", ha="right")
    plt.show()


def busiest(run: Run) -> None:
    """How busy the busiest expert is without balance and with a bias, and what the loss is.

    Args:
        run: of the ways "none" and "bias". Rank 0 reported `balance`, `seed`, `step`, `busiest`
            and `loss`.
    """
    found = {way: _of_seeds(run, way) for way in ("none", "bias")}
    title = "The bias evens the work; here its training loss is higher (three seeds)"
    left, right = show.style.panels(1, 2, 3.3, title, width_ratios=(1.6, 1))
    _step_by_step(left, found)
    for at, (way, seeds) in enumerate(found.items()):
        hue, loss = WAYS[way][0], seeds["loss"][:, -20:].mean(1)
        right.plot([at] * len(loss), loss, "o", color=hue, ms=5, alpha=0.45, mew=0)
        right.plot([at - 0.22, at + 0.22], [loss.mean()] * 2, color=hue, lw=2.5)
        words = f"{loss.mean():.2f}"
        look = {"fontsize": 9, "color": palette.outline(hue), "va": "center"}
        right.text(at + 0.27, loss.mean(), words, **look)
    names = ("no balance", "bias, 0.01\nper step")
    right.set(xlim=(-0.5, 1.7), xticks=range(2), xticklabels=names, ylabel="training loss")
    right.tick_params(axis="x", labelsize=9)
    words = "means of the last 20 steps\n(dot: a seed)"
    right.set_title(words, loc="left", fontsize=9)
    plt.show()


def waiting(run: Run, ranks: int = 4, seed: int = 1) -> None:
    """What each expert has to do in the last step, and how long the ranks that hold them wait.

    Args:
        run: of the ways "none" and "bias", of which rank 0 reported `shares`, for each expert.
        ranks: how many share out the experts.
        seed: the training that is shown.
    """
    title = "All ranks wait for the busiest one: the last step, on four ranks with two experts each"
    look = {"height_ratios": (1, 1.1), "sharey": "row", "sharex": "row"}
    panels = show.style.panels(2, 2, 3.9, title, **look)
    idle = {"facecolor": "white", "edgecolor": "#AAAAAA", "hatch": "////", "lw": 0.8}
    for column, way in enumerate(("none", "bias")):
        rows = [r for r in run.ranks[0].reports if (r["balance"], r["seed"]) == (way, seed)]
        shares = np.array(rows[-1]["shares"])
        each = len(shares) // ranks
        top, bottom = panels[column], panels[2 + column]
        for expert, share in enumerate(shares):
            top.bar(expert, share, 0.75, **palette.ground(palette.colour(expert // each)))
        top.set(xlabel="expert (colour: its rank)", xticks=range(len(shares)))
        top.set_title(NAMES[way], loc="left", fontsize=9)
        work = shares.reshape(ranks, each).mean(1)
        for rank, time in enumerate(work):
            bottom.barh(rank, time, 0.7, **palette.ground(palette.colour(rank)))
            bottom.barh(rank, work.max() - time, 0.7, left=time, **idle)
            if work.max() - time > 0.5:
                words = {"fontsize": 8, "va": "center", "ha": "center"}
                words["bbox"] = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"}
                bottom.text((work.max() + time) / 2, rank, "waits", **words)
        bottom.text(work.max() + 0.04, int(work.argmax()), f"{work.max():.1f}", va="center")
        bottom.set(xlabel="time (1: a rank with an even share)")
        bottom.set(yticks=range(ranks), yticklabels=[f"rank {rank}" for rank in range(ranks)])
        bottom.set_ylim(ranks - 0.4, -0.6)
        top.axhline(1, color=GREY, lw=0.8)
        bottom.axvline(1, color=GREY, lw=0.8)
    panels[0].set_ylabel("tokens\n(even shares)")
    panels[2].set_xlim(0, 1.12 * panels[2].get_xlim()[1])
    plt.show()


def balance(runs: Mapping[str, Run], gentle: Mapping[str, Run], plain: Run) -> None:
    """How busy the busiest expert is, step by step, and what the loss is at the end.

    Args:
        runs: way -> its run, "none" among them. Rank 0 reported `balance`, `seed`, `step`,
            `busiest` and `loss`.
        gentle: way -> the same with a smaller coefficient.
        plain: the same of a layer with one expert.
    """
    found = {way: _of_seeds(run, way) for way, run in runs.items()}
    title = "Balance evens the work; with these coefficients the mean loss is higher (three seeds)"
    left, right = show.style.panels(1, 2, 3.5, title)
    _step_by_step(left, found)
    start = _at_the_end(right, found["none"], "none", "o", "no balance", (0.13, 0, "left"))
    for way, run in gentle.items():
        small_name, large_name = ENDS[way]
        small = _at_the_end(right, _of_seeds(run, way), way, "D", *small_name)
        large = _at_the_end(right, found[way], way, "o", *large_name)
        look = {"color": WAYS[way][0], "ls": WAYS[way][1], "lw": 1.5}
        right.plot(*zip(start, small, large, strict=True), **look)
    near = 0.13, 0, "left"
    _at_the_end(right, _of_seeds(plain, "none"), "plain", "s", "one expert", near)
    right.set(xlabel="busiest expert (even shares)", ylabel="training loss")
    right.set(xlim=(0.8, 4.7), xticks=(1, 2, 3, 4))
    words = "means of the last 20 steps (pale: a seed)"
    right.set_title(words, loc="left", fontsize=9)
    plt.show()


def _step_by_step(axes: Axes, found: Mapping[str, dict[str, np.ndarray]]) -> None:
    """How busy the busiest expert is in each step, for each way."""
    for way, seeds in found.items():
        hue, dash = WAYS[way]
        width = min(15, seeds["busiest"].shape[1])
        smooth = [np.convolve(row, np.ones(width) / width, "valid") for row in seeds["busiest"]]
        steps = np.arange(len(smooth[0])) + width
        axes.plot(steps, np.transpose(smooth), color=hue, ls=dash, lw=0.8, alpha=0.45)
        axes.plot(steps, np.mean(smooth, 0), color=hue, lw=2.2)
        at, low = LABELS[way]
        axes.text(150, at, NAMES[way], fontsize=8, color=palette.outline(hue), ha="right", va=low)
    axes.axhline(1, color=GREY, lw=0.8)
    axes.text(20, 1.03, "all experts equally busy", fontsize=8, color=GREY, va="bottom")
    words = "tokens of the busiest expert\n(even shares, mean of 15 steps)"
    axes.set(xlabel="step", ylabel=words, ylim=(0.8, 4.4), yticks=(1, 2, 3, 4))
    axes.set_title("step by step (thin: a seed; thick: the mean)", loc="left", fontsize=9)


LABELS = {"none": (4.06, "bottom"), "loss": (1.28, "top"), "bias": (2.72, "bottom")}  # heights
ENDS = {  # the smaller and the larger coefficient, and where to write them
    "loss": (
        ("auxiliary, 0.02", (0.05, 0.009, "left")),
        ("auxiliary, 0.1", (0, 0.009, "center")),
    ),
    "bias": (("bias, 0.003", (-0.05, -0.009, "right")), ("bias, 0.01", (0, 0.009, "center"))),
}


def _of_seeds(run: Run, way: str) -> dict[str, np.ndarray]:
    """What rank 0 reported of one way: `busiest` and `loss`, each (seeds, steps)."""
    rows = [each for each in run.ranks[0].reports if each["balance"] == way]
    seeds = sorted({each["seed"] for each in rows})
    return {
        key: np.array([[row[key] for row in rows if row["seed"] == seed] for seed in seeds])
        for key in ("busiest", "loss")
    }


def _at_the_end(
    axes: Axes, seeds: dict[str, np.ndarray], way: str, marker: str, words: str, near: tuple
) -> tuple[float, float]:
    """A small point for each seed, and a large one, named, for their mean, which is returned."""
    hue = WAYS[way][0]
    x, y = (seeds[key][:, -20:].mean(1) for key in ("busiest", "loss"))
    axes.plot(x, y, marker, color=hue, ms=4, alpha=0.4, mew=0)
    axes.plot(x.mean(), y.mean(), marker, color=hue, ms=8, zorder=3)
    at = x.mean() + near[0], y.mean() + near[1]
    look = {"fontsize": 8, "color": palette.outline(hue), "ha": near[2], "zorder": 4}
    axes.text(*at, words, va="center", **look)
    return x.mean(), y.mean()


def whose_tokens(ranks: int) -> None:
    """Whose tokens a rank's gradient of the router has seen, and whose that of its expert."""
    title = "Whose tokens has each gradient seen?"
    axes = show.style.axes(2.9, title)
    axes.axis("off")
    axes.set(xlim=(-1.6, 3.0 * ranks + 2.4), ylim=(3.5, -0.5))
    for top, words in ((0.2, "the\nrouter"), (2.0, "its own\nexpert")):
        show.style.centred(axes, -0.8, top + 0.6, f"gradient of\n{words}")
    for rank in range(ranks):
        left, part = 3.0 * rank, 2.6 / ranks
        show.style.centred(axes, left + 1.3, -0.15, f"on rank {rank}")
        for source in range(ranks):
            at, words = left + source * part, f"rank\n{source}'s"
            look = palette.ground(palette.colour(source))
            empty = {"facecolor": "none", "edgecolor": "#AAAAAA", "linestyle": ":"}
            show.style.box(
                axes, at + 0.03, 0.2, part - 0.06, 1.2, **look if source == rank else empty
            )
            show.style.box(axes, at + 0.03, 2.0, part - 0.06, 1.2, **look)
            show.style.centred(axes, at + part / 2, 2.6, words, fontsize=8)
            words = words if source == rank else "not\nseen"
            hue = "black" if source == rank else GREY
            show.style.centred(axes, at + part / 2, 0.8, words, fontsize=8, color=hue)
    for top, words in ((0.8, "the ranks have\nto add up"), (2.6, "complete")):
        axes.text(3.0 * ranks, top, words, fontsize=9, va="center")
    plt.show()


SEEN = {  # whose tokens the gradient of each rank has seen, before ranks add up
    "expert 0": ((0, (0, 1)), (2, (2, 3))),
    "a dense layer": ((0, (0,)), (1, (1,)), (2, (2,)), (3, (3,))),
}


def copies() -> None:
    """Whose tokens the copies of an expert have seen, beside those of a dense layer."""
    title = "Whose tokens are in the sum? Those of four ranks, so divide by four"
    every = show.style.panels(1, 2, 3.4, title, bare=True)
    for axes, (name, terms) in zip(every, SEEN.items(), strict=True):
        axes.set(xlim=(-2.1, 5.4), ylim=(5.6, -0.2))
        words = "two terms" if len(terms) == 2 else "four terms"
        axes.set_title(f"gradient of {name}: {words}", loc="left", fontsize=9)
        gap = 4.2 / len(terms)
        for place, (rank, seen) in enumerate(terms):
            top = gap * place
            _row_of_tokens(axes, top, seen)
            show.style.centred(axes, -1.1, top + 0.4, f"on rank {rank}", fontsize=9)
        axes.plot([-2.0, 4.1], [4.35] * 2, color="black", lw=1)
        _row_of_tokens(axes, 4.55, range(4))
        show.style.centred(axes, -1.1, 4.95, "their sum", fontsize=9)
        axes.text(4.35, 4.95, "÷ 4", fontsize=13, va="center")
    plt.show()


def _row_of_tokens(axes: Axes, top: float, seen: Sequence[int]) -> None:
    """A box for each of four ranks, filled if its tokens are in the gradient."""
    for source in range(4):
        look = {"facecolor": "none", "edgecolor": "#AAAAAA", "linestyle": ":"}
        if source in seen:
            look = palette.ground(palette.colour(source))
            show.style.centred(axes, source + 0.5, top + 0.42, f"rank\n{source}'s", fontsize=8)
        show.style.box(axes, source + 0.03, top, 0.94, 0.8, **look)


HOLDS = ("dense layers", "router", "experts")


def grid(experts: Sequence[Sequence[str]]) -> None:
    """Four ranks: who shares the experts, and who holds the same ones.

    Args:
        experts: for each row of ranks, the experts that each rank holds, as words.
    """
    title = "Four ranks, e = 2: tokens travel in rows, experts' gradients are added in columns"
    axes = show.style.axes(3.3, title)
    axes.axis("off")
    axes.set(xlim=(-0.4, 11.6), ylim=(5.6, -0.1))
    ranks = 0
    for row, line in enumerate(experts):
        for column, held in enumerate(line):
            left, top = 0.3 + 3.8 * column, 0.2 + 3.0 * row
            look = {"facecolor": "none", "edgecolor": GREY, "linewidth": 1.5}
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
        "grey boxes: held by all four ranks\nviolet, olive: held by the\ntwo ranks of a column"
    )
    axes.text(7.6, 2.8, words, fontsize=9, va="center")
    plt.show()


def _both(axes: Axes, start: tuple, end: tuple, words: str, at: tuple) -> None:
    look = {"arrowstyle": "<->", "color": GREY, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=look)
    show.style.centred(axes, *at, words, fontsize=8, color=GREY)


ACTIONS = "first sort", "all-to-all", "second sort", "undo the\nsecond sort", "all-to-all"
ACTIONS += ("times the gate,\nadd up",)
ORDERS = "by token", "by expert", "by sender,\nthen expert", "by expert", "by expert"
ORDERS += "by sender,\nthen expert", "by expert", "by token"
LEFT = 1.3, 3.15, 5.55, 7.4, 9.55, 11.4, 13.8, 15.65  # of the columns of boxes
BOX, LABEL = 0.9, 0.65  # width of a box, height of the words above a group

Group = tuple[str, list[tuple[str, int]]]  # its name; its rows, each a token and an expert


def two_sorts(choices: Sequence[Sequence[Sequence[int]]], experts: int) -> None:
    """The rows of `MoELayer`: sorted, sent, sorted again, computed, and all the way back.

    Args:
        choices: for each rank, for each of its tokens, the experts that it chooses.
        experts: how many the ranks share in equal parts.
    """
    stages, ends = _sorted_twice(choices, experts)
    tall = [max(_height(stage[rank]) for stage in stages) for rank in range(len(choices))]
    title = "Two sorts: the colour is a row's expert, a thick arrow leaves a rank"
    axes = show.style.axes(1.0 + 0.25 * (sum(tall) + len(tall)), title)
    axes.axis("off")
    axes.set(xlim=(0, LEFT[-1] + BOX + 0.1), ylim=(sum(tall) + 0.7 * (len(tall) - 1), -2.4))
    for left, words in zip(LEFT, ORDERS, strict=True):
        if left not in LEFT[3:5]:
            show.style.centred(axes, left + BOX / 2, -0.55, words, fontsize=8)
    middle = (LEFT[3] + LEFT[4] + BOX) / 2
    show.style.centred(axes, middle, -0.55, ORDERS[3], fontsize=8)
    show.style.centred(axes, middle, -1.8, "grouped\nproducts", fontsize=8, weight="bold")
    gaps = [gap for gap in range(len(LEFT) - 1) if gap != 3]
    for gap, words in zip(gaps, ACTIONS, strict=True):
        at = (LEFT[gap] + BOX + LEFT[gap + 1]) / 2
        show.style.centred(axes, at, -1.8, words, fontsize=8, weight="bold")
    places: list[dict] = [{} for _ in stages]
    top = 0.0
    for rank, height in enumerate(tall):
        show.style.centred(axes, 0.55, top + height / 2, f"rank {rank}", fontsize=9)
        for column, stage in enumerate(stages):
            found = _column(axes, column, top, stage[rank])
            places[column] |= {row: (rank, y) for row, y in found.items()}
        words = f"ends = {ends[rank]}"
        show.style.centred(axes, middle, top + LABEL / 2, words, fontsize=8, family="monospace")
        top += height + 0.7
        if rank < len(tall) - 1:
            axes.plot([0, LEFT[-1] + BOX], [top - 0.35] * 2, color="#CCCCCC", lw=0.8)
    for gap in gaps:
        for row, (rank, y) in places[gap].items():
            to, end = places[gap + 1][row]
            sent = gap in (1, 5)
            look = {"arrowstyle": "->", "color": EXPERTS[row[1]] if sent else "#AAAAAA"}
            look |= {"lw": 1.6 if rank != to else 0.8, "shrinkA": 0, "shrinkB": 0}
            tail, head = (LEFT[gap] + BOX + 0.06, y), (LEFT[gap + 1] - 0.06, end)
            axes.annotate("", head, tail, arrowprops=look)
    plt.show()


def _sorted_twice(
    choices: Sequence[Sequence[Sequence[int]]], experts: int
) -> tuple[list[list[list[Group]]], list[list[int]]]:
    """For each column of the picture, for each rank, its groups; and each rank's `ends`.

    The names and the steps are those of `MoELayer`. Every expert is chosen.
    """
    e, here, letters = len(choices), experts // len(choices), iter("abcdefghij")
    own, ordered, counts, arrived, grouped, ends = [], [], [], [], [], []
    for each in choices:
        tokens = [(next(letters), those) for those in each]
        own.append([(f"token {token}", [(token, i) for i in those]) for token, those in tokens])
        rows, chosen = [row for _, rows in own[-1] for row in rows], np.ravel(each)
        counts.append(np.bincount(chosen, minlength=experts).reshape(e, here))
        order = chosen.argsort(kind="stable")
        ordered.append(_cut([rows[at] for at in order], counts[-1].sum(1)))
    for rank in range(e):
        arrived.append([each[rank] for each in ordered])
        rows = [row for part in arrived[-1] for row in part]
        came = np.array([each[rank] for each in counts])  # (e, E/e)
        which = np.tile(np.arange(here), e)
        by_expert = np.repeat(which, came.ravel()).argsort(kind="stable")
        grouped.append(_cut([rows[at] for at in by_expert], came.sum(0)))
        ends.append(came.sum(0).cumsum().tolist())
    products = [_named("expert", each, here * rank) for rank, each in enumerate(grouped)]
    there = [[_named("to rank", each) for each in ordered]]
    there += [[_named("from rank", each) for each in arrived]]
    back = [[_named("to rank", each) for each in arrived]]
    back += [[_named("from rank", each) for each in ordered]]
    return [own, *there, products, products, *back, own], ends


def _named(words: str, parts: Sequence[list], first: int = 0) -> list[Group]:
    return [(f"{words} {number}", part) for number, part in enumerate(parts, first)]


def _cut(rows: list, sizes: np.ndarray) -> list[list]:
    ends = np.cumsum(sizes).tolist()
    return [rows[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]


def _height(groups: list[Group]) -> float:
    return sum(LABEL + len(rows) for _, rows in groups)


def _column(axes: Axes, column: int, top: float, groups: list[Group]) -> dict:
    """Draw the groups of one column on one rank; where is the middle of each row?"""
    left, found = LEFT[column], {}
    for name, rows in groups:
        start, top = top + LABEL, top + LABEL + len(rows)
        if column not in (3, 4, 7):
            words = {"fontsize": 7, "color": GREY}
            show.style.centred(axes, left + BOX / 2, start - 0.27, name, **words)
        elif column == 3:
            look = palette.ground(EXPERTS[rows[0][1]], 0.15) | {"linewidth": 1.5}
            width = LEFT[4] - left - BOX
            show.style.box(axes, left + BOX, start + 0.04, width, len(rows) - 0.08, **look)
            at = left + BOX + width / 2, start + len(rows) / 2
            show.style.centred(axes, *at, name, fontsize=8)
        for place, (token, expert) in enumerate(rows):
            words = (token.upper() if column > 3 else token) + str(expert)
            found[token, expert] = start + place + 0.5
            if column < 7:
                look = palette.ground(EXPERTS[expert])
                show.style.box(axes, left, start + place + 0.06, BOX, 0.88, **look)
                show.style.centred(axes, left + BOX / 2, start + place + 0.5, words, fontsize=8)
        if column == 7:  # the sum of a token's rows
            middle, token = start + len(rows) / 2, rows[0][0]
            show.style.box(axes, left, middle - 0.44, BOX, 0.88, **palette.ground("#999999"))
            show.style.centred(axes, left + BOX / 2, middle, token.upper(), fontsize=8)
            found |= dict.fromkeys(rows, middle)
    return found
