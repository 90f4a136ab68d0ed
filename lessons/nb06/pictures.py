"""The pictures that notebook 06 alone draws."""

import re
from collections.abc import Callable

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils import palette, show
from nbtorchrun.runs import Run

GREY = "#999999"  # of what is replicated
LINES = ("#444444", "#AA4499", "#44AA99", "#999933", "#882255")  # of versions, not of ranks


def mlp() -> None:
    """An MLP over 3 ranks: A sharded by columns, B by rows."""
    axes = show.style.axes(3.9, "An MLP over 3 ranks: A sharded by columns, B by rows")
    axes.axis("off")
    axes.set(xlim=(0, 11), ylim=(4.1, -0.75), aspect="equal")
    x_end = _matrix(axes, 0.1, 1.7, 2, 4, "x", GREY)
    for rank in range(3):
        middle, hue = 0.3 + 1.4 * rank, palette.colour(rank)
        _arrow(axes, (x_end, 1.7), (1.85, middle))
        end = _matrix(axes, 1.9, middle, 2, 4, "x", GREY)
        show.style.centred(axes, end + 0.25, middle, "@")
        end = _matrix(axes, end + 0.5, middle, 4, 2, f"A{rank}", hue)
        show.style.centred(axes, end + 0.55, middle, "ReLU →")
        end = _matrix(axes, end + 1.1, middle, 2, 2, f"h{rank}", hue)
        show.style.centred(axes, end + 0.25, middle, "@")
        end = _matrix(axes, end + 0.5, middle, 2, 4, f"B{rank}", hue)
        show.style.centred(axes, end + 0.25, middle, "=")
        end = _matrix(axes, end + 0.5, middle, 2, 4, f"y{rank}", hue)
        _arrow(axes, (end + 0.03, middle), (9.55, 1.7))
    _matrix(axes, 9.65, 1.7, 2, 4, "y", GREY)
    show.style.centred(axes, 0.75, 0.4, "nothing sent:\nall have x", fontsize=8)
    show.style.centred(axes, 9.95, 0.4, "all-reduce:\nadd the terms", fontsize=8)
    show.style.centred(axes, 0.75, 3.3, "grey:\nreplicated", fontsize=8)
    plt.show()


def _matrix(
    axes: Axes, left: float, middle: float, rows: int, columns: int, name: str, colour: str
) -> float:
    """A matrix as a box, its name inside and its shape below; returns where it ends."""
    unit = 0.2
    width, height = unit * columns, unit * rows
    look = {**palette.ground(colour), "linewidth": 1.5}
    show.style.box(axes, left, middle - height / 2, width, height, **look)
    show.style.centred(axes, left + width / 2, middle, name)
    below = middle + height / 2 + 0.2
    show.style.centred(axes, left + width / 2, below, f"{rows} x {columns}", fontsize=8)
    return left + width


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": show.style.GREY})


NUMBERED = 1.9  # how wide a box with four numbers is


def f_and_g(terms: list[list[int]]) -> None:
    """What f and g do in each pass: a copy and a sum, and the other way round.

    Args:
        terms: what each rank adds to the gradient of x.
    """
    title = "An MLP on two ranks: one pass copies, the other adds up; black is an all-reduce"
    for axes, way in zip(show.style.panels(2, 1, 3.9, title), ("forward", "backward"), strict=True):
        axes.axis("off")
        axes.set(xlim=(-0.1, 13.2), ylim=(2.55, -0.2))
        axes.set_title(way, loc="left", fontsize=10)
        forward = way == "forward"
        total = [sum(each) for each in zip(*terms, strict=True)]
        names = ("x", "y = y0 + y1") if forward else (f"dL/dx\n{total}", "dL/dy")
        for left, name in ((0, names[0]), (11.2, names[1])):
            show.style.box(axes, left, 0.55, NUMBERED, 0.8, **palette.ground(GREY))
            show.style.centred(axes, left + NUMBERED / 2, 0.95, name)
        for left, name, sums in ((2.6, "f", not forward), (10.0, "g", forward)):
            look = {"facecolor": "black"} if sums else palette.ground(GREY)
            show.style.box(axes, left, 0.05, 0.5, 1.8, **look)
            ink = {"color": "white" if sums else "black", "weight": "bold"}
            show.style.centred(axes, left + 0.25, 0.95, name, **ink)
            words = f"{name} adds up: all-reduce" if sums else f"{name} copies: sends nothing"
            show.style.centred(axes, left + 0.25, 2.2, words)
        for rank, term in enumerate(terms):
            top = 0.05 + 1.0 * rank
            middle = top + 0.4
            show.style.box(axes, 5.7, top, 2.2, 0.8, **palette.ground(palette.colour(rank)))
            show.style.centred(axes, 6.8, middle, f"rank {rank}: A{rank}, B{rank}")
            for start, end in (((3.15, middle), (5.65, middle)), ((7.95, middle), (9.95, middle))):
                _arrow(axes, *((start, end) if forward else (end, start)))
            words = ("x", f"y{rank}") if forward else (str(term), "dL/dy")
            show.style.centred(axes, 4.4, middle - 0.2, words[0])
            show.style.centred(axes, 8.95, middle - 0.2, words[1])
        for start, end in (((1.95, 0.95), (2.55, 0.95)), ((10.55, 0.95), (11.15, 0.95))):
            _arrow(axes, *((start, end) if forward else (end, start)))
    plt.show()


HEAD = 0.42  # the width of one head's stripe


def heads() -> None:
    """Attention on two ranks with two heads each: who holds which stripe."""
    title = "Attention on 2 ranks: 4 heads, 2 on each; a colour is what one rank holds"
    axes = show.style.axes(3.9, title)
    axes.axis("off")
    axes.set(xlim=(-0.1, 15.4), ylim=(5.1, -1.0), aspect="equal")
    side, middle = 4 * HEAD, 2.2
    show.style.box(axes, 0, middle - 0.6, side, 1.2, **palette.ground(GREY))
    show.style.centred(axes, side / 2, middle, "x (T, D)")
    for row, name in enumerate("qkv"):
        top = 0.0 + 1.75 * row
        _stripes(axes, 2.7, top, 1.35, across=False)
        show.style.centred(axes, 2.7 + side / 2, top - 0.18, f"$W_{name}$ (D, D)", fontsize=8)
        _arrow(axes, (side + 0.05, middle), (2.62, top + 0.68))
    show.style.centred(axes, 2.7 + side / 2, -0.75, "by columns", weight="bold", fontsize=9)
    for head in range(4):
        top, look = 0.1 + 1.25 * head, palette.ground(palette.colour(head // 2))
        side_of = 0.95
        corners = [(5.9, top), (5.9, top + side_of), (5.9 + side_of, top + side_of)]
        axes.add_patch(plt.Polygon(corners, closed=True, **look))
        show.style.centred(axes, 7.4, top + 0.5, f"head {head}", fontsize=8)
        _arrow(axes, (2.7 + side + 0.08, middle), (5.82, top + 0.5))
        _arrow(axes, (7.95, top + 0.5), (9.0, middle))
    show.style.centred(axes, 6.6, -0.75, "scores (T, T): one for each head", fontsize=9)
    _stripes(axes, 9.1, middle - 0.6, 1.2, across=False)
    show.style.centred(axes, 9.1 + side / 2, middle - 0.8, "mixed (T, D)", fontsize=8)
    show.style.centred(axes, 9.1 + side + 0.25, middle, "@")
    _stripes(axes, 11.3, middle - side / 2, side, across=True)
    words = "$W_{out}$ (D, D)"
    show.style.centred(axes, 11.3 + side / 2, middle - side / 2 - 0.2, words, fontsize=8)
    show.style.centred(axes, 11.3 + side / 2, -0.75, "by rows", weight="bold", fontsize=9)
    _arrow(axes, (11.3 + side + 0.05, middle), (13.55, middle))
    show.style.centred(axes, 13.3, middle + 0.35, "g", weight="bold")
    show.style.box(axes, 13.6, middle - 0.6, side, 1.2, **palette.ground(GREY))
    show.style.centred(axes, 13.6 + side / 2, middle, "y (T, D)")
    show.style.centred(axes, side / 2, middle + 0.95, "f", weight="bold")
    plt.show()


def _stripes(axes: Axes, left: float, top: float, height: float, across: bool) -> None:
    """A matrix of four heads' stripes, two in the colour of each rank; across: rows."""
    for head in range(4):
        look = palette.ground(palette.colour(head // 2))
        if across:
            place = left, top + head * height / 4, 4 * HEAD, height / 4
        else:
            place = left + head * HEAD, top, HEAD, height
        show.style.box(axes, *place, **look)


def rows() -> None:
    """The rows of q, k and v as one layer, in two orders, and where two ranks cut them."""
    orders = {
        "q, then k, then v": [(part, head) for part in "qkv" for head in range(4)],
        "head by head": [(part, head) for head in range(4) for part in "qkv"],
    }
    title = "q, k and v of 4 heads as the rows of one layer, cut for 2 ranks"
    axes = show.style.axes(2.3, title)
    axes.axis("off")
    axes.set(xlim=(-3.3, 12.1), ylim=(3.0, -0.6))
    for line, (name, order) in enumerate(orders.items()):
        top = 1.5 * line
        show.style.centred(axes, -1.7, top + 0.4, name)
        for place, (part, head) in enumerate(order):
            look = palette.ground(palette.colour(head // 2))
            show.style.box(axes, place + 0.04, top, 0.92, 0.8, **look)
            show.style.centred(axes, place + 0.5, top + 0.4, f"{part}{head}")
        axes.plot((6, 6), (top - 0.25, top + 1.05), color="black", linewidth=2)
    for middle, rank in ((3, 0), (9, 1)):
        show.style.centred(axes, middle, -0.35, f"rank {rank} gets these rows", fontsize=8)
    words = "blue: heads 0 and 1, orange: heads 2 and 3, which belong on rank 1"
    show.style.centred(axes, 6, 2.75, words, fontsize=8)
    plt.show()


PARTS = (  # name, width, which pass sends there
    *(("x", 0.5, ""), ("f", 0.45, "backward"), ("attention\nH/t heads", 1.7, "split")),
    *(("g", 0.45, "forward"), ("+ x, norm", 1.0, ""), ("f", 0.45, "backward")),
    *(("MLP\n4D/t hidden", 1.7, "split"), ("g", 0.45, "forward"), ("+ x, norm", 1.0, "")),
)


def block() -> None:
    """Where the ranks of a block talk, forward and backward."""
    title = "A block on two ranks: grey is replicated, colour is sharded, black sends"
    every = show.style.panels(2, 1, 3.2, title)
    for axes, way in zip(every, ("forward", "backward"), strict=True):
        axes.axis("off")
        axes.set(xlim=(-0.2, 10.3), ylim=(2.0, -0.55))
        axes.set_title(way, loc="left", fontsize=9)
        left, gap = 0.0, 0.3
        for name, width, kind in PARTS:
            sends = kind == way
            if kind == "split":
                for rank in range(2):
                    look = palette.ground(palette.colour(rank))
                    show.style.box(axes, left, 0.1 + 0.65 * rank, width, 0.6, **look)
                    middle = left + width / 2, 0.4 + 0.65 * rank
                    show.style.centred(axes, *middle, name, fontsize=8)
            else:
                ink = "white" if sends else "black"
                look = {"facecolor": "black"} if sends else palette.ground(GREY)
                show.style.box(axes, left, 0.1, width, 1.25, **look)
                words = name.replace(", ", ",\n")
                show.style.centred(axes, left + width / 2, 0.73, words, color=ink, fontsize=8)
            if sends:
                show.style.centred(axes, left + width / 2, 1.7, "all-reduce", fontsize=8)
            ends = (left + width, 0.73), (left + width + gap, 0.73)
            if name != "+ x, norm" or left < 7:
                _arrow(axes, *(ends if way == "forward" else ends[::-1]))
            left += width + gap
    plt.show()


def vocabulary(logits: list[list[float]], targets: list[int], ranks: int) -> None:
    """Logits of a few positions, sharded by tokens, and what each rank can say of them.

    Args:
        logits: a row for each position, a number for each token of the vocabulary.
        targets: the right token of each position; framed.
        ranks: how many share the vocabulary.
    """
    size, each = len(logits[0]), len(logits[0]) // ranks
    title = f"Logits of {len(logits)} positions and {size} tokens, sharded over {ranks} ranks"
    axes = show.style.axes(0.9 + 0.45 * len(logits), title)
    axes.axis("off")
    axes.set(xlim=(-1.9, size + 0.1), ylim=(len(logits) + 0.1, -1.15))
    for column in range(size):
        rank = column // each
        quiet = {"fontsize": 8, "color": show.style.GREY}
        show.style.centred(axes, column + 0.5, -0.25, str(column), **quiet)
        for row, values in enumerate(logits):
            look = palette.ground(palette.colour(rank))
            right = column == targets[row]
            look |= {"linewidth": 2.5, "edgecolor": "black", "zorder": 3} if right else {}
            show.style.box(axes, column + 0.03, row + 0.05, 0.94, 0.9, **look)
            at = column + 0.5, row + 0.5
            show.style.centred(axes, *at, f"{values[column]:.0f}", zorder=4)
    for rank in range(ranks):
        middle = (rank + 0.5) * each
        show.style.centred(axes, middle, -0.85, f"rank {rank} holds these logits")
    for row in range(len(logits)):
        show.style.centred(axes, -0.95, row + 0.5, f"position {row}", fontsize=8)
    show.style.centred(axes, -0.95, -0.25, "token", fontsize=8, color=show.style.GREY)
    plt.show()


def curves(found: dict[str, list[float]], run: Run) -> None:
    """The loss of each version of the model, and how far each is from one process.

    Args:
        found: the losses of each version, by its mistake; of the right one also clipped.
        run: a run in which rank 0 printed how far each mistake is off, and reported as a claim how
            far the right version is.
    """
    off = {"none": max(r["worst"] for r in run.reports if "one process" in r.get("claim", ""))}
    off |= {m: float(n) for m, n in re.findall(r"(\S.*?) +off by (\S+)", run.ranks[0].stdout)}
    title = "The loss finds none of the four mistakes, and the comparison finds all four"
    left, right = show.style.panels(1, 2, 3.3, title, width_ratios=(3, 2))
    kinds = ("--", "-.", ":", (0, (1, 4)))  # the last: dots that stand far apart
    looks = ({"linewidth": 6, "alpha": 0.3}, *({"linestyle": kind} for kind in kinds))
    for number, (mistake, look) in enumerate(zip(off, looks, strict=True)):
        left.semilogy(found[mistake], color=LINES[number], label=mistake, **look)
        right.barh(number, off[mistake], 0.6, **palette.ground(LINES[number]))
        words = f" at most {off[mistake]:.0e}" if number == 0 else f" {off[mistake]:.3f}"
        right.text(off[mistake], number, words, va="center", fontsize=9)
    clipped = "none, clipped"  # what the last mistake is compared with
    left.semilogy(found[clipped], color=LINES[number], label=clipped, linewidth=6, alpha=0.2)
    left.set(xlabel="step", ylabel="loss (log)")
    left.set_title("two ranks, one batch: the loss", loc="left", fontsize=9)
    left.legend(frameon=False, title="mistake", fontsize=8.5, labelspacing=0.2, borderaxespad=0)
    right.set(xscale="log", xlim=(1e-16, 10), xlabel="largest difference (log)")
    right.set_yticks(range(len(off)), list(off), fontsize=9)
    right.invert_yaxis()
    right.set_title("five steps on four ranks: how far off?", loc="left", fontsize=9)
    plt.show()


SQUARES = {"rank 0's shards": 0, "rank 1's shards": 1, "replicated": None}


def norms(run: Run) -> None:
    """What is added up for the norm, and how far rank 1 drifts from rank 0.

    Args:
        run: a run in which ranks 0 and 1 reported, for each `way` to clip and each `seed`, their
            `norms` in each step, and how far the replicated parameters are `apart`.
    """
    first = {(r["way"], r["rank"]): r["norms"][0] ** 2 for r in run.reports if r.get("seed") == 1}
    whole, alone = first["right", 0], [first["each rank alone", rank] for rank in (0, 1)]
    both = sum(alone) - whole  # what is replicated is in both
    own, other = alone[0] - both, alone[1] - both
    bars = {
        "rank 0\nalone": (own, 0, both),
        "rank 1\nalone": (0, other, both),
        "add up\nall": (own, other, 2 * both),
        "right": (own, other, both),
    }
    left, right = show.style.panels(1, 2, 3.3, "The norm of a gradient that two ranks share")
    for place, parts in enumerate(bars.values()):
        bottom = 0.0
        for (_, rank), size in zip(SQUARES.items(), parts, strict=True):
            hue = GREY if rank is None else palette.colour(rank)
            left.bar(place, size, 0.7, bottom=bottom, **palette.ground(hue))
            bottom += size
        show.style.centred(left, place, bottom + 0.04, f"norm {bottom**0.5:.3f}", fontsize=8)
    left.set_xticks(range(len(bars)), list(bars), fontsize=8)
    left.set(ylabel="sum of squares, first step", ylim=(0, 1.6))
    left.set_title("alone, each rank misses the other's shards", loc="left", fontsize=9)
    hues = [GREY if rank is None else palette.colour(rank) for rank in SQUARES.values()]
    handles = [plt.Rectangle((0, 0), 1, 1, **palette.ground(hue)) for hue in hues]
    left.legend(handles, list(SQUARES), frameon=False, fontsize=8, loc="upper left")
    drift = [
        r["apart"] for r in run.reports if r.get("way") == "each rank alone" and r["rank"] == 0
    ]
    for seed, apart in enumerate(drift, 1):
        right.plot(range(1, len(apart) + 1), apart, color=LINES[seed], label=f"seed {seed}")
    right.set(xlabel="step", ylabel="largest difference", ylim=0)
    right.set_title("each rank alone: copies on rank 1 against rank 0", loc="left", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    plt.show()


def sent(lines: dict[str, dict[int, float]], meets: dict[str, float]) -> None:
    """MB that each rank sends in a step, by the tokens in the batch.

    Args:
        lines: for each way to share the work, tokens -> MB.
        meets: for DDP and FSDP, the tokens at which the tensor parallel line crosses theirs.
    """
    axes = show.style.axes(3.2, "What each rank must send in a step", "tokens in the batch", "MB")
    for number, (way, values) in enumerate(lines.items()):
        axes.plot(list(values), list(values.values()), "o-", color=LINES[number], label=way)
    for number, (way, tokens) in enumerate(meets.items()):
        height = next(iter(lines[way].values()))
        axes.plot([tokens] * 2, [0, height], ":", color=LINES[number])
        axes.text(tokens + 15, 0.1, f"{tokens:.0f}")
    axes.set(xlim=0, ylim=0)
    axes.legend(frameon=False)
    plt.show()


def per_rank(found: dict[str, list[dict]]) -> None:
    """Print what a rank holds and sends with the largest batch: for each way, its reports."""
    last = [reports[-1] for reports in found.values()]
    words = f"per rank, {last[0]['tokens']:,} tokens per step"
    print(f"{words:34}" + "".join(f"{way:>9}" for way in found))
    for label, key in {"state, MB": "state", "to send, MB": "sent"}.items():
        print(f"{label:34}" + "".join(f"{r[key] / 1e6:9.1f}" for r in last))
    print(f"{'collectives':34}" + "".join(f"{r['calls']:9}" for r in last))


HALF, SEND = 1.5, 0.75  # how long half a block is drawn, and the all-reduce after it
GATHER = 1.4  # how long the gather of a block is drawn; its gradients take as long or twice


def waiting() -> None:
    """A drawing of two blocks: when a rank computes, and when its messages travel."""
    lanes = {
        "DDP waits for the last gradients": _ddp,
        "FSDP waits for the first gather and the last gradients": _fsdp,
        "tensor parallel, as we built it, waits after each half of a block": _in_turn,
    }
    _lanes(lanes, "A drawing of one step of two blocks, time from left to right: who waits?")


def overlapped() -> None:
    """A drawing of two blocks with tensor parallelism: in turn, and with parts that overlap."""
    lanes = {
        "tensor parallel, as we built it, waits after each half of a block": _in_turn,
        "asynchronous tensor parallel, at best: parts travel while other parts are multiplied": (
            _in_parts
        ),
    }
    _lanes(lanes, "A drawing of one step of two blocks: what can asynchronous messages save?")


def _lanes(lanes: dict[str, Callable[[Axes], None]], title: str) -> None:
    """One row of products and one of messages for each lane."""
    every = show.style.panels(len(lanes), 1, 0.3 + 1.28 * len(lanes), title, bare=True)
    for axes, (name, draw) in zip(every, lanes.items(), strict=True):
        axes.set(xlim=(-2.1, 8 * (HALF + SEND) + 0.1), ylim=(2.1, -0.1))
        axes.set_title(name, loc="left", fontsize=9)
        for row, words in enumerate(("products", "messages")):
            show.style.centred(axes, -1.1, 0.5 + 1.05 * row, words, fontsize=8)
        draw(axes)
    plt.show()


def _ddp(axes: Axes) -> None:
    _blocks(axes, 0.0)
    _message(axes, 6 * HALF, 2 * GATHER, "gradients 2")
    _wait(axes, 8 * HALF, 2 * GATHER)
    _message(axes, 8 * HALF, 2 * GATHER, "gradients 1")


def _fsdp(axes: Axes) -> None:
    _wait(axes, 0.0, GATHER)
    _message(axes, 0.0, GATHER, "gather\n1")
    _blocks(axes, GATHER)
    for halves, words in ((0, "gather 2"), (4, "gather 1"), (6, "gradients 2"), (8, "gradients 1")):
        _message(axes, GATHER + halves * HALF, GATHER, words.replace(" ", "\n"))
    _wait(axes, GATHER + 8 * HALF, GATHER)


def _in_turn(axes: Axes) -> None:
    """Half a block, then its message, and no product meanwhile."""
    for place, words in enumerate(_halves()):
        left = place * (HALF + SEND)
        _product(axes, left, HALF, words)
        _wait(axes, left + HALF, SEND)
        _message(axes, left + HALF, SEND, "f" if "back" in words else "g")


def _in_parts(axes: Axes) -> None:
    """Half a block after the other; parts travel during the first and the last products of each."""
    for place, words in enumerate(_halves()):
        _product(axes, place * HALF, HALF, words)
        for part in (0, 1, 4, 5):
            _message(axes, (place + part / 6) * HALF, HALF / 6, "")


def _halves() -> list[str]:
    """The halves of two blocks in the order of their products."""
    order = ["att. 1", "MLP 1", "att. 2", "MLP 2"]
    return [f"{half}\nforward" for half in order] + [f"{half}\nbackward" for half in order[::-1]]


def _blocks(axes: Axes, left: float) -> None:
    """Two blocks without a gap, forward and then backward."""
    order = ("block 1\nforward", "block 2\nforward", "block 2\nbackward", "block 1\nbackward")
    for place, words in enumerate(order):
        _product(axes, left + 2 * HALF * place, 2 * HALF, words)


def _product(axes: Axes, left: float, width: float, words: str) -> None:
    show.style.box(axes, left, 0, width, 0.95, **palette.ground(palette.colour(0)))
    show.style.centred(axes, left + width / 2, 0.48, words, fontsize=8)


def _wait(axes: Axes, left: float, width: float) -> None:
    show.style.box(axes, left, 0, width, 0.95, **OUTSIDE)
    show.style.centred(axes, left + width / 2, 0.48, "wait", fontsize=7)


def _message(axes: Axes, left: float, width: float, words: str) -> None:
    show.style.box(axes, left + 0.03, 1.1, width - 0.06, 0.9, facecolor="black")
    show.style.centred(axes, left + width / 2, 1.55, words, color="white", fontsize=7)


def mesh() -> None:
    """Four ranks as a mesh, and the quarter of a row layer's weight that each of them stores."""
    axes = show.style.axes(2.9, "A mesh of 2 x 2 ranks, and what each stores of one weight")
    axes.axis("off")
    axes.set(xlim=(-2.9, 14.3), ylim=(3.6, -1.0))
    for row in range(2):
        top = 1.7 * row
        look = {"facecolor": "white", "edgecolor": show.style.GREY, "linestyle": "--"}
        show.style.box(axes, -0.2, top - 0.15, 5.2, 1.3, **look)
        for column in range(2):
            rank = 2 * row + column
            look = palette.ground(palette.colour(rank))
            left = 2.5 * column
            show.style.box(axes, left, top, 2.3, 1.0, **look)
            words = f"rank {rank}\nbatch {row}"
            show.style.centred(axes, left + 1.15, top + 0.5, words, fontsize=8)
            left, high = 7.6 + 2.6 * column, 0.1 + 1.4 * row
            show.style.box(axes, left, high, 2.6, 1.4, **look)
            show.style.centred(axes, left + 1.3, high + 0.7, f"rank {rank}", fontsize=8)
        words = "these inputs:\nshard " + str(row)
        show.style.centred(axes, 8.9 + 2.6 * row, 3.3, words, fontsize=8)
        words = f"FSDP's\nhalf {row}"
        show.style.centred(axes, 13.6, 0.8 + 1.4 * row, words, fontsize=8)
    _arrow(axes, (0.0, -0.35), (4.8, -0.35))
    show.style.centred(axes, 2.4, -0.7, "tensor parallel: fast links", weight="bold")
    _arrow(axes, (-0.6, 0.0), (-0.6, 2.7))
    show.style.centred(axes, -1.75, 1.35, "FSDP shards\neach shard\nonce more", weight="bold")
    show.style.centred(axes, 10.2, -0.5, "the weight of a row layer\n(outputs, inputs)", fontsize=9)
    plt.show()


TOKEN, WIDE = 0.3, 1.3  # how high a token's row is drawn, and how wide
OUTSIDE = {"facecolor": "white", "edgecolor": "#BBBBBB", "linestyle": ":"}  # of rows held elsewhere


def positions(tokens: int, ranks: int) -> None:
    """Sequence parallel, forward: which rank holds which tokens, and which ones it sends.

    Args:
        tokens: in the sequence.
        ranks: that share it; they divide it.
    """
    title = f"Sequence parallel on {ranks} ranks: who holds which of {tokens} tokens; black sends"
    axes = show.style.axes(3.2, title)
    axes.axis("off")
    high, gap = tokens * TOKEN, 0.35
    bottom = ranks * (high + gap) - gap
    axes.set(xlim=(-1.1, 13.6), ylim=(bottom + 0.45, -0.8))
    for rank in range(ranks):
        top, hue = rank * (high + gap), palette.colour(rank)
        middle = top + high / 2
        show.style.centred(axes, -0.65, middle, f"rank {rank}")
        own = range(rank * tokens // ranks, (rank + 1) * tokens // ranks)
        _tokens(axes, 0.0, top, tokens, own, hue)
        _arrow(axes, (1.35, middle), (1.85, middle))
        _arrow(axes, (2.55, middle), (3.05, middle))
        _tokens(axes, 3.1, top, tokens, range(tokens), GREY)
        _arrow(axes, (4.45, middle), (4.95, middle))
        show.style.box(axes, 5.0, top, 2.6, high, **palette.ground(hue))
        show.style.centred(axes, 6.3, middle, f"rank {rank}'s parts\nof the matrices")
        _arrow(axes, (7.65, middle), (8.15, middle))
        _tokens(axes, 8.2, top, tokens, range(tokens), hue)
        _arrow(axes, (9.55, middle), (10.05, middle))
        _arrow(axes, (10.75, middle), (11.25, middle))
        _tokens(axes, 11.3, top, tokens, own, hue)
    for left, name in ((1.9, "all-gather"), (10.1, "reduce-scatter")):
        show.style.box(axes, left, 0, 0.6, bottom, facecolor="black")
        look = {"color": "white", "rotation": 90}
        show.style.centred(axes, left + 0.3, bottom / 2, name, **look)
    heads = ("own tokens:\nnorm, dropout, + x", "all tokens:\nreplicated", "attention or MLP")
    heads += ("all tokens:\na term of the sum", "own tokens:\nnorm, dropout, + x")
    for x, words in zip((0.65, 3.75, 6.3, 8.85, 11.95), heads, strict=True):
        show.style.centred(axes, x, -0.45, words, fontsize=8)
    for x, words in ((2.2, "in place of f"), (10.4, "in place of g")):
        show.style.centred(axes, x, bottom + 0.25, words, fontsize=8)
    plt.show()


def _tokens(axes: Axes, left: float, top: float, tokens: int, held: range, hue: str) -> None:
    """A sequence, a row for each token; what this rank does not hold is an empty frame."""
    for token in range(tokens):
        place = left, top + token * TOKEN, WIDE, TOKEN
        show.style.box(axes, *place, **(palette.ground(hue) if token in held else OUTSIDE))
        if token in held:
            middle = left + WIDE / 2, top + (token + 0.5) * TOKEN
            show.style.centred(axes, *middle, f"token {token}", fontsize=8)


BESIDE = {"textcoords": "offset points", "ha": "left", "va": "center", "fontsize": 8}


def share_of_messages(
    machine: str,
    times: dict[int, tuple[float, float]],
    one_card: dict[int, tuple[float, float]] | None = None,
    box: int | None = None,
) -> None:
    """Milliseconds of a block's products and of its messages, and the share of the messages.

    Args:
        machine: whose times these are.
        times: number of ranks t -> (milliseconds of products, of messages).
        one_card: the same for the t that need two boxes, if a single card of each box sends.
        box: how many GPUs stand in a box; with more ranks, two boxes are needed.
    """
    one_card = one_card or {}
    title = f"Calculated for a block on {machine}: products shrink, messages don't"
    left, right = show.style.panels(1, 2, 3.4, title)
    ranks, (products, messages) = list(times), zip(*times.values(), strict=True)
    left.plot(ranks, products, "o-", color=LINES[0], label="products")
    left.plot(ranks[1:], messages[1:], "s--", color=LINES[1], label="messages")
    left.set(xscale="log", yscale="log", ylabel="milliseconds (log)")
    left.set_xlabel("ranks t that share the block (log)")
    left.set_xticks(ranks, list(map(str, ranks)))
    left.minorticks_off()
    left.set_yticks((0.5, 1, 2, 5, 10, 20, 50), ("0.5", "1", "2", "5", "10", "20", "50"))
    left.set_title("time, forward and backward", loc="left", fontsize=9)
    left.legend(frameon=False, loc="center left", bbox_to_anchor=(0, 0.42))
    bars = {}
    for t, pair in times.items():
        bars[f"{t}\n8 cards" if t in one_card else f"{t}"] = pair, ""
    for t, pair in one_card.items():
        bars[f"{t}\n1 card"] = pair, "//"
        before = ranks[ranks.index(t) - 1]
        left.plot((before, t), (times[before][1], pair[1]), "s:", color=LINES[1])
        left.annotate("1 card", (t, pair[1]), (7, 0), **BESIDE)
        left.annotate("8 cards", (t, times[t][1]), (7, 0), **BESIDE)
    for place, ((product, message), hatch) in enumerate(bars.values()):
        share = 100 * message / (product + message)
        right.bar(place, share, 0.7, hatch=hatch, **palette.ground(LINES[1]))
        show.style.centred(right, place, share + 5, f"{share:.0f} %")
    right.set(xlabel="ranks t that share the block", ylabel="% of the time", ylim=(0, 100))
    right.set_xticks(range(len(bars)), list(bars), fontsize=9)
    right.set_title("share of the messages", loc="left", fontsize=9)
    if box:
        at = ranks.index(box)
        left.set_xlim(right=1.9 * ranks[-1])
        for axes, edge in ((left, (box * ranks[at + 1]) ** 0.5), (right, at + 0.5)):
            axes.axvline(edge, color=show.style.GREY, linewidth=0.8)
            high = axes.get_xaxis_transform()
            axes.text(edge, 0.97, "one box ", ha="right", fontsize=8, transform=high)
            axes.text(edge, 0.97, " two boxes", ha="left", fontsize=8, transform=high)
    plt.show()
