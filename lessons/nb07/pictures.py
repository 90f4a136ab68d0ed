"""The pictures that notebook 07 alone draws."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Arc
from torch import Tensor

from course_utils import palette, show
from nbtorchrun.runs import Run

TOKENS, PARTS, CHANGED = "#DDDDDD", "#88CCEE", "#E8C66A"  # grounds of boxes
HANDS = "#CC6677", "#332288"  # of the key and of the query
GREY = show.style.GREY
ARROW = {"color": GREY, "arrowstyle": "->", "lw": 1.2}


def _box(axes: Axes, x: float, y: float, words: str, colour: str, width: float = 1.3) -> None:
    """A box of height 1 around a point, with words in it."""
    look = palette.ground(colour)
    show.style.box(axes, x - width / 2, y - 0.5, width, 1.0, **look)
    show.style.centred(axes, x, y, words, color="black", fontsize=8)


def model() -> None:
    """Token ids in, logits out: the parts of a Transformer, with the shapes between them."""
    boxes = [  # centre, words, step, colour
        (0.7, "tokens", "", TOKENS),
        (2.9, "embed", "step 5", PARTS),
        (5.1, "add\npositions", "step 1", PARTS),
        (7.9, "attention", "steps 2, 3", CHANGED),
        (9.8, "add,\nnorm", "step 4", PARTS),
        (11.9, "feed-\nforward", "step 4", CHANGED),
        (13.8, "add,\nnorm", "step 4", PARTS),
        (16.6, "linear", "step 5", PARTS),
        (18.8, "logits", "", TOKENS),
    ]
    shapes = {1.8: "B, T", 4.0: "B, T, D", 6.3: "B, T, D", 15.35: "B, T, D", 17.75: "B, T, V"}
    axes = show.style.axes(2.5, "A Transformer: from token ids to logits", width=10)
    axes.set(xlim=(-0.2, 19.7), ylim=(-1.9, 2.4))
    axes.axis("off")
    show.style.box(axes, 6.85, -1.3, 7.85, 3.1, fill=False, edgecolor=GREY, ls="--")
    show.style.centred(axes, 10.8, 2.1, "a block: repeated L times")
    for start, end in ((7.0, 9.6), (10.9, 13.6)):  # around attention, around feed-forward
        axes.plot([start, start, end], [0, 1.25, 1.25], color=GREY, lw=1.2)
        axes.annotate("", (end, 0.5), (end, 1.29), arrowprops=ARROW)
    for (left, *_), (right, *_) in pairwise(boxes):
        axes.annotate("", (right - 0.64, 0), (left + 0.66, 0), arrowprops=ARROW)
    for x, words, step, colour in boxes:
        _box(axes, x, 0, words, colour)
        show.style.centred(axes, x, -0.85, step, fontsize=8)
    for x, words in shapes.items():
        show.style.centred(axes, x, 0.75, words, fontsize=8)
    plt.show()


def positions(pattern: Tensor) -> None:
    """The pattern (T, D) that is added to each position."""
    title = "64 positions, each with its own pattern"
    axes = show.style.axes(2.4, title, "position t", "coordinate")
    image = axes.imshow(pattern.T, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    plt.colorbar(image, label="added value")
    plt.show()


def one_query(scores: Tensor, weights: Tensor, values: Tensor, gathered: Tensor) -> None:
    """From scores to weights to the weighted mean, for one position that reads four."""
    three = show.style.panels(1, 3, 2.5, "Position 3 reads four positions")
    names = [str(number) for number in range(len(scores))]
    panels = {
        "1. compare: scores": (scores, "q · k / √d"),
        "2. softmax: weights": (weights, "share of the whole"),
        "3. gather: weighted values": (weights * values, "weight · value"),
    }
    for axes, (title, (heights, label)) in zip(three, panels.items(), strict=True):
        bars = axes.bar(names, heights.tolist(), color=PARTS)
        axes.bar_label(bars, fmt="{:.2g}", fontsize=8)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("position that is read")
        axes.set_ylabel(label)
        axes.margins(y=0.18)
    three[2].text(0.98, 0.8, f"sum: {gathered:.1f}", transform=three[2].transAxes, ha="right")
    plt.show()


def heads(weights: Mapping[str, Tensor]) -> None:
    """The weights (T, T) of one head under several masks; a weight of 0 is left empty."""
    title = "How much each position takes from each other one (head 0)"
    panels = show.style.panels(1, len(weights), 3.1, title, sharey=True)
    for axes, (name, one) in zip(panels, weights.items(), strict=True):
        one = one.detach()
        image = axes.imshow(one.where(one > 0, math.nan), vmin=0, vmax=1)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("position that is read")
    panels[0].set_ylabel("position that reads")
    plt.colorbar(image, ax=panels, label="weight")
    plt.show()


def moves(tables: Mapping[str, Tensor]) -> None:
    """How far logits move when a token changes; where nothing moves, the picture is empty."""
    title = "Which logits move if one token changes? Below the diagonal, none should (white)"
    panels = show.style.panels(1, len(tables), 3.2, title, sharey=True)
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        shown = table.where(table > 0, math.nan).log10()
        image = axes.imshow(shown, vmin=-5, vmax=0.5)
        axes.plot([-0.5, 15.5], [-0.5, 15.5], color=GREY, lw=0.8, ls=":")
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("position of the logits")
    panels[0].set(ylabel="position of the changed token", yticks=range(0, 16, 5))
    plt.colorbar(image, ax=panels, label="largest move (log10)")
    plt.show()


def blocks() -> None:
    """The lab's block beside one of 2026."""
    title = "Two blocks: new parts are tinted, the thick line is the straight way"
    axes = show.style.axes(3.4, title, width=10)
    thick = {**ARROW, "color": HANDS[1], "lw": 2.6, "shrinkA": 0, "shrinkB": 0}
    axes.set(xlim=(-3.2, 18.4), ylim=(-4.6, 1.9))
    axes.axis("off")
    lab = ["attention", "+", "layer norm", "feed-forward", "+", "layer norm"]
    rows = {  # by height: the name, the first column, the parts
        0.0: ("2017, the lab", 1, lab),
        -3.2: ("2026", 0, ["RMSNorm", "attention,\nrotary", "+", "RMSNorm", "SwiGLU", "+"]),
    }
    for y, (name, column, parts) in rows.items():
        show.style.centred(axes, -2.3, y, name, fontsize=10)
        places = [1.6 + 2.4 * (column + number) for number in range(len(parts))]
        axes.annotate("", (places[0] - 0.95, y), (places[0] - 1.9, y), arrowprops=ARROW)
        show.style.centred(axes, places[0] - 2.2, y + 0.4, "x", fontsize=9)
        for (left, part), (right, following) in pairwise(zip(places, parts, strict=True)):
            look = thick if (part, following) == ("+", "layer norm") else ARROW
            axes.annotate("", (right - 0.95, y), (left + 0.95, y), arrowprops=look)
        axes.annotate("", (places[-1] + 2.0, y), (places[-1] + 0.95, y), arrowprops=thick)
        sums = [x for x, part in zip(places, parts, strict=True) if part == "+"]
        after = {"2026": sums[0]}.get(name, places[2])  # where the second residual starts
        for start, end in ((places[0] - 1.9, sums[0]), (after + 1.2, sums[1])):
            axes.plot([start, start, end], [y, y + 1.2, y + 1.2], color=HANDS[1], lw=2.6)
            axes.annotate("", (end, y + 0.5), (end, y + 1.24), arrowprops=thick)
        for start, end in ((-0.9, places[0] - 1.9), (after + 0.95, after + 1.2)):  # up to a bend
            axes.plot([start, end], [y, y], color=HANDS[1], lw=2.6)
        for x, part in zip(places, parts, strict=True):
            new = name == "2026" and part != "+"
            _box(axes, x, y, part, CHANGED if new else TOKENS, width=1.9)
    plt.show()


def rotation(rotate: Callable[..., Tensor], q: Tensor, k: Tensor) -> None:
    """Query and key as the hands of a clock, early and late in a text; and scores over distance."""
    figure, (early, late, scores) = plt.subplots(
        1, 3, figsize=(show.style.WIDTH, 2.9), layout="constrained", width_ratios=(1, 1, 1.9)
    )
    title = "The angle between two hands depends only on the distance of their positions"
    figure.suptitle(title, x=0.01, ha="left")
    query, key = torch.tensor([[-0.03, -1.0]])[None], torch.tensor([[1.0, 0.0]])[None]  # (1, 1, 2)
    for clock, s in ((early, 0), (late, 100)):
        hands = {"k": rotate(key, first=s), "q": rotate(query, first=s + 3)}
        angles = {}
        for (name, hand), colour in zip(hands.items(), HANDS, strict=True):
            x, y = hand[0, 0].tolist()
            angles[name] = math.degrees(math.atan2(y, x))
            look = {**ARROW, "color": colour, "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
            clock.annotate("", (x, y), (0, 0), arrowprops=look)
            show.style.centred(clock, 1.22 * x, 1.22 * y, name, color=colour)
        between = (angles["q"] - angles["k"]) % 360
        clock.add_patch(Arc((0, 0), 1, 1, theta1=angles["k"], theta2=angles["k"] + between, lw=1.5))
        middle = math.radians(angles["k"] + between / 2)
        show.style.centred(clock, 0.74 * math.cos(middle), 0.74 * math.sin(middle),
                           f"{between:.0f}°", fontsize=9)  # fmt: skip
        clock.add_patch(plt.Circle((0, 0), 1, fill=False, color=GREY, lw=0.8, ls=":"))
        clock.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), aspect="equal", xticks=[], yticks=[])
        clock.set_title(f"key at {s}, query at {s + 3}", loc="left", fontsize=10)
        clock.set_xlabel("first coordinate")
    early.set_ylabel("second coordinate")
    distances = list(range(30))
    for s, look in ((0, {"lw": 5, "alpha": 0.4}), (100, {"lw": 1.5, "ls": "--"})):
        at = [(rotate(q, first=s + n) * rotate(k, first=s)).sum().item() for n in distances]
        scores.plot(distances, at, color=palette.NEUTRAL, label=f"key at {s}", **look)
    scores.set_title("another query and key, all d coordinates", loc="left", fontsize=10)
    scores.set_xlabel("distance in positions")
    scores.set_ylabel("q · k")
    scores.spines[["top", "right"]].set_visible(False)
    scores.set_ylim(top=scores.get_ylim()[1] + 1.5)  # room for the legend
    scores.legend(frameon=False, loc="upper right", ncols=2)
    plt.show()


def ddp(shares: Sequence[Sequence[int]], one_process: bool = False) -> None:
    """A step of DDP, from each rank's sequences to its parameters.

    Args:
        shares: of each rank, the numbers of its sequences.
        one_process: whether one process takes the same step below, with all sequences.
    """
    ranks, grey, right = len(shares), {"facecolor": "#EEEEEE", "edgecolor": GREY}, 15.1
    title = "A step with DDP: same parameters, different sequences, averaged gradients"
    if one_process:
        title, right = "Does DDP take the step that one process takes with the whole batch?", 17.2
    axes = show.style.axes(1.3 + 0.6 * (ranks + one_process), title)
    axes.axis("off")
    axes.set(xlim=(-0.1, right), ylim=(0.75 + 1.15 * (ranks + one_process), -0.1))
    copy = "model" if one_process else "replica"
    heads = "its sequences", f"its {copy}", "gradient of\nits mean loss"
    heads += ("backward()\naverages", f"its {copy}\nafter the step")
    for x, words in zip((1.5, 4.7, 7.5, 10.15, 13.3), heads, strict=True):
        show.style.centred(axes, x, 0.22, words, color=GREY)
    parameters = palette.ground(palette.MEMORY["parameters"])
    arrow = ARROW | {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}

    def row(top: float, name: str, sequences: Sequence[int], look: dict[str, str], g: str) -> None:
        axes.text(0, top - 0.07, name, fontsize=9, va="bottom")
        for place, sequence in enumerate(sequences):
            show.style.box(axes, 0.02 + 0.75 * place, top, 0.65, 0.65, **look)
            show.style.centred(axes, 0.345 + 0.75 * place, top + 0.325, str(sequence))
        ways = [(0.1 + 0.75 * len(sequences), 3.75), (5.65, 6.55), (8.45, 9.25), (11.05, 11.85)]
        mean = g if name == "one process" else "average"
        if mean == g:  # nothing to average
            ways[2:] = [(8.45, 11.85)]
        for start, end in ways:
            axes.annotate("", (end, top + 0.325), (start, top + 0.325), arrowprops=arrow)
        for left, width, words, ground in (
            (3.8, 1.8, "θ", parameters),
            (6.6, 1.8, g, look),
            (11.9, 2.8, f"θ \u2212 η · {mean}", parameters),
        ):
            show.style.box(axes, left, top, width, 0.65, **ground)
            show.style.centred(axes, left + width / 2, top + 0.325, words, fontsize=10)

    for rank, sequences in enumerate(shares):
        look = palette.ground(palette.colour(rank))
        row(1.0 + 1.15 * rank, f"rank {rank}", sequences, look, f"$g_{rank}$")
    look = palette.ground(palette.ACTIVITY["message"], 0.3)
    show.style.box(axes, 9.3, 1.0, 1.7, 1.15 * ranks - 0.5, **look)
    words = " + ".join(f"$g_{rank}$" for rank in range(ranks))
    show.style.centred(axes, 10.15, 0.75 + 0.575 * ranks, f"{words}\n――――\n{ranks}", fontsize=10)
    if one_process:
        last = 1.0 + 1.15 * ranks
        row(last, "one process", [each for mine in shares for each in mine], grey, "$g$")
        for rank in range(ranks):
            axes.plot([14.75, 15.3], [1.325 + 1.15 * rank] * 2, color=GREY, lw=1.2)
        axes.plot([15.3, 15.3, 14.8], [1.325, last + 0.325, last + 0.325], color=GREY, lw=1.2)
        axes.text(15.5, 0.825 + 0.575 * (ranks + 1), "all equal?", fontsize=10, va="center")
    plt.show()


def sequence_weights(shares: Sequence[int], weights: Mapping[str, Tensor]) -> None:
    """How much each sequence of each rank counts, in several ways; one process is a line.

    Args:
        shares: how many sequences each rank has.
        weights: title to the weight of each sequence.
    """
    held = ", ".join(map(str, shares[:-1]))
    title = f"How much each sequence counts, on ranks with {held} and {shares[-1]} of them"
    panels = show.style.panels(1, len(weights), 2.7, title, sharey=True)
    equal = Fraction(1, sum(shares))
    for axes, (name, every) in zip(panels, weights.items(), strict=True):
        ranks = [[_fraction(weight) for weight in mine] for mine in every.split(list(shares))]
        middles, left = [], 0.0
        for rank, mine in enumerate(ranks):
            for place, weight in enumerate(mine):
                look = palette.ground(palette.colour(rank))
                axes.bar(left + place, float(weight), 0.88, **look)
                look = {"color": "black", "fontsize": 10}
                show.style.centred(axes, left + place, 0.3 * float(equal), str(weight), **look)
            middles.append(left + (len(mine) - 1) / 2)
            left += len(mine) + 0.8
        axes.axhline(float(equal), color="black", lw=1.2, ls="--")
        axes.text(-0.44, float(equal) + 0.008, f"one process: {equal}", va="bottom", fontsize=9)
        sums = list(map(sum, ranks))
        axes.set_xticks(middles, [f"rank {rank}\nsum {each}" for rank, each in enumerate(sums)])
        axes.tick_params(axis="x", length=0)
        alike = {"rank": set(sums), "sequence": set(map(_fraction, every))}
        same = [f"each {what} counts {min(each)}" for what, each in alike.items() if len(each) == 1]
        axes.set_title(": ".join([name, *same]), loc="left", fontsize=10)
    panels[0].set_ylabel("weight of a sequence")
    plt.show()


def two_means(losses: Sequence[Sequence[float]]) -> None:
    """The mean over all tokens, and the mean of the ranks' means, as areas of total width 1.

    Args:
        losses: of each rank, the losses of its tokens, all equal.
    """
    held = sum(map(len, losses))
    ways = {  # the share of one token, by rank
        "the mean over all tokens": [Fraction(1, held) for _ in losses],
        "the mean of the ranks' means": [Fraction(1, len(losses) * len(mine)) for mine in losses],
    }
    title = f"Two means of the same {held} losses: each coloured area is a mean"
    panels = show.style.panels(2, 1, 5.0, title, sharey=True)
    for axes, (name, shares) in zip(panels, ways.items(), strict=True):
        left, mean, middles = Fraction(0), Fraction(0), []
        for rank, (share, mine) in enumerate(zip(shares, losses, strict=True)):
            middles.append(float(left + share * len(mine) / 2))
            for loss in mine:
                look = palette.ground(palette.colour(rank))
                show.style.box(axes, float(left), 0, float(share), loss, **look)
                look = {"color": "black", "fontsize": 10}
                show.style.centred(axes, float(left + share / 2), 0.9, str(share), **look)
                left, mean = left + share, mean + share * Fraction(loss)
        axes.axhline(float(mean), color="black", lw=1.2, ls="--")
        axes.text(1.015, float(mean), f"mean {float(mean):g}", va="center", fontsize=10)
        axes.set_title(name, loc="left", fontsize=10)
        names = [f"rank {rank}\nloss {mine[0]:g}" for rank, mine in enumerate(losses)]
        axes.set_xticks(middles, names)
        axes.tick_params(axis="x", length=0)
        axes.set(xlim=(0, 1), ylim=(0, max(map(max, losses)) + 0.5), ylabel="loss of a token")
        axes.set_yticks([0, *sorted({mine[0] for mine in losses})])
    panels[1].set_xlabel("width of a bar: its share in the mean")
    plt.show()


def windows_of_a_step(runs: Sequence[tuple[int, int]]) -> None:
    """Which windows of a step each run trains on; the first two runs agree, the third does not.

    Args:
        runs: of each run, its ranks and the windows of each rank.
    """
    title = "Which of the 16 windows of a step does each run use?"
    axes = show.style.axes(2.7, title, "number of the window, as `batch` draws them")
    most = max(ranks * each for ranks, each in runs)
    for row, (ranks, each) in enumerate(runs):
        for place in range(most):
            used = place < ranks * each
            look = palette.ground(palette.colour(place // each))
            look = look if used else {"fill": False, "ls": ":", "edgecolor": GREY}
            show.style.box(axes, place - 0.45, row - 0.2, 0.9, 0.5, **look)
            words = str(place) if used else "-"
            show.style.centred(axes, place, row + 0.05, words, color="black", fontsize=8)
        for rank in range(ranks):
            middle = rank * each + (each - 1) / 2
            show.style.centred(axes, middle, row - 0.33, f"rank {rank}", fontsize=8)
    ends = "must end with the\nsame parameters", "must end with\nother parameters"
    for row, words in enumerate(ends):
        axes.annotate("", (most + 0.1, row + 0.95), (most + 0.1, row + 0.15),
                      arrowprops={**ARROW, "arrowstyle": "<->"})  # fmt: skip
        axes.text(most + 0.4, row + 0.55, words, va="center", fontsize=9)
    names = [f"{n} ranks, {each} each" if n > 1 else f"1 rank, {each}" for n, each in runs]
    axes.set_yticks([row + 0.05 for row in range(len(runs))], names)
    axes.set(xlim=(-0.7, most + 4.2), ylim=(len(runs) - 0.6, -0.5), xticks=[])
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    plt.show()


def _fraction(number: Tensor) -> Fraction:
    """The simple fraction that a rounded number stands for."""
    return Fraction(number.item()).limit_denominator(99)


def tests_and_losses(
    found: Mapping[str, Mapping[str, float]], losses: Mapping[str, Sequence[float]]
) -> None:
    """Which test catches which model, and beside it the losses of three seeds."""
    kinds = list(losses)
    tests = list(next(iter(found.values())))
    figure, (grid, dots) = plt.subplots(
        1, 2, figsize=(9.5, 3.9), layout="constrained", width_ratios=(1.35, 1), sharey=True
    )
    figure.suptitle("Each mistake fails a test; the losses show two of the five", x=0.01, ha="left")
    for row, kind in enumerate(kinds):
        for column, test in enumerate(tests):
            if kind in found:
                failed = found[kind][test] > 1e-4
                look = palette.ground("#CC6677") if failed else palette.ground("#117733", 0.15)
                show.style.box(grid, column - 0.45, row - 0.4, 0.9, 0.8, **look)
                show.style.centred(grid, column, row, "fails" if failed else "ok", color="black",
                                   fontsize=8)  # fmt: skip
            else:
                show.style.centred(grid, column, row, "-", color=GREY)
    words = [test.replace("_", " ").replace("silent block ", "silent block\n") for test in tests]
    grid.set_xticks(range(len(tests)), words, rotation=30, ha="right", fontsize=8)
    grid.set_yticks(range(len(kinds)), kinds)
    grid.set(xlim=(-0.6, len(tests) - 0.4), ylim=(len(kinds) - 0.4, -0.6))
    grid.set_title("what the tests say", loc="left", fontsize=10)
    for row, kind in enumerate(kinds):
        dots.plot(losses[kind], [row] * len(losses[kind]), "o", color=palette.NEUTRAL, alpha=0.7)
    lowest, highest = min(losses["right"]), max(losses["right"])
    dots.axvspan(lowest, highest, color="#88CCEE", alpha=0.35, lw=0)
    dots.set_title("what the test loss says (band: right)", loc="left", fontsize=10)
    dots.set_xlabel("test loss after 150 steps, nats; a dot is a seed")
    for axes in (grid, dots):
        axes.spines[["top", "right"]].set_visible(False)
    plt.show()


def learning_rate(rates: Sequence[float]) -> None:
    """The learning rate of each step."""
    axes = show.style.axes(2.0, "Warm-up, then 1/√step", "step", "learning rate")
    axes.plot(rates, color=palette.NEUTRAL)
    axes.set_ylim(0, None)
    plt.show()


@dataclass(frozen=True)
class Training:
    """A training that takes minutes, saved: what it reached, on the way, and what it wrote."""

    test_loss: float
    losses: Sequence[tuple[int, float]]  # step, training loss
    sample: str


_LOSSES = 1.85, 1.6, 1.58, 1.47, 1.43, 1.46, 1.42, 1.37, 1.34, 1.36
SAVED_RUN = Training(
    1.43,
    [(500 * number, loss) for number, loss in enumerate(_LOSSES, 1)],
    r"""def if the should is a 3 and 5
    parent
    -  output.append(exc, element from the acte the object distributiong an for
  the constribution line thajoing of bee caled the befores
    an has to are be executor shared
        if return context(os.org):
            return transerver = 'pator': '\u2ar', ' 0""",
)


SAVED_TABLE = 1.37  # the test loss of counting up to five characters: *Going further* counts it


def learning(
    measured: Sequence[tuple[int, float]], saved: Training, tests: Mapping[int, float],
    counted: Mapping[str, float],
) -> None:  # fmt: skip
    """The training loss over steps, and the test losses of three trainings."""
    title = "A Transformer learns to write Python: is it better than counting?"
    axes = show.style.axes(3.4, title, "step (log scale)", "nats per character")
    axes.plot(*zip(*measured, strict=True), color=palette.NEUTRAL, label="Transformer, training")
    axes.plot(
        *zip(*saved.losses, strict=True), "--", color=palette.NEUTRAL, label="training, saved run"
    )
    for what, loss in counted.items():
        axes.axhline(loss, color="#CC6677", lw=1.2)
        axes.text(20, loss - 0.04, f"counting {what}: {loss:.2f}", va="top", fontsize=9)
    axes.plot(
        list(tests), list(tests.values()), "o", color="#332288", ms=8, label="Transformer, test"
    )
    for steps, loss in tests.items():
        side, va = (0.08, "bottom") if steps == max(tests) else (-0.08, "top")
        axes.text(steps, loss + side, f"{loss:.2f}", ha="center", va=va)
    axes.set(xscale="log", xlim=(18, 7000), ylim=(1.0, None))
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    plt.show()


def products(times: Mapping[int, tuple[Sequence[float], Sequence[float]]]) -> None:
    """Forward and backward of two models, cut into products and the rest."""
    title = "What forward and backward spend their time on"
    axes = show.style.axes(3.0, title, "", "wall time, where forward takes 1")
    for number, (forward, backward) in enumerate(times.values()):
        for place, parts in ((3 * number, forward), (3 * number + 1, backward)):
            bottom = 0.0
            looks = {"matrix products": palette.ACTIVITY["forward"], "the rest": TOKENS}
            for (name, colour), part in zip(looks.items(), parts, strict=True):
                height = part / sum(forward)
                label = name if place == 0 else None
                axes.bar(place, height, bottom=bottom, label=label, **palette.ground(colour, 0.9))
                show.style.centred(axes, place, bottom + height / 2, f"{height:.2f}", color="black")
                bottom += height
    names = [f"{what}\nD = {width}" for width in times for what in ("forward", "backward")]
    axes.set_xticks([3 * n + what for n in range(len(times)) for what in (0, 1)], names)
    axes.legend(frameon=False, loc="upper left")
    plt.show()


def steps(run: Run, rounds: Sequence[Mapping[str, float]]) -> None:
    """A step over the slow link in three ways, with its messages; the prediction as a line."""
    names = [name.removesuffix(", predicted") for name in rounds[0] if "predicted" in name]
    spans: dict[str, dict[str, list[tuple[str, float, float]]]] = {name: {} for name in names}
    for mark in run.timeline():
        step, _, what = mark["name"].partition(": ")
        name, _, number = step.partition(", step ")
        if mark["rank"] == 0 and name in spans:
            spans[name].setdefault(number, []).append((what, mark["start"], mark["end"]))
    title = "A step over a link of 1 Gbit/s: when is the link busy?"
    axes = show.style.axes(3.7, "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)
    best = min(range(len(rounds)), key=lambda n: sum(rounds[n][name] for name in names))
    for row, name in enumerate(names):
        step = list(spans[name].values())[5:][best]  # the same round for all, the shortest
        origin = min(start for _, start, _ in step)
        for what, start, end in step:
            place = (row + 0.06, 0.3) if what == "message" else (row - 0.34, 0.38)
            axes.broken_barh([(1e3 * (start - origin), 1e3 * (end - start))], place,
                             facecolor=palette.ACTIVITY[what], edgecolor="white")  # fmt: skip
        expected = rounds[best][f"{name}, predicted"]
        axes.plot([expected] * 2, [row - 0.42, row + 0.42], color="black", lw=1.5, ls=":")
    looks = [plt.Rectangle((0, 0), 1, 1, color=palette.ACTIVITY[what])
             for what in ("forward", "backward", "update", "message")]  # fmt: skip
    looks.append(plt.Line2D([], [], color="black", ls=":"))
    labels = ["forward", "backward", "update", "message", "predicted end"]
    axes.legend(looks, labels, ncols=5, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    plt.show()


def random_tokens(honest: Sequence[float], cheat: Sequence[float]) -> None:
    """Two trainings on tokens that nobody can predict."""
    axes = show.style.axes(3.0, "Predicting random tokens", "step", "loss, nats")
    curves = {"causal mask": honest, "the sheet's mask": cheat}
    for number, (name, curve) in enumerate(curves.items()):
        axes.plot(curve, color=palette.colour(number), label=name)
    for words, level in (("ln 10", math.log(10)), ("ln 10 / 8", math.log(10) / 8)):
        axes.axhline(level, ls=":", lw=1.2, color="black", zorder=3)  # above the curves
        axes.text(203, level, words, va="center")
    axes.set(xlim=(0, 200), ylim=(0, None))
    axes.legend(frameon=False, loc="center right")
    plt.show()
