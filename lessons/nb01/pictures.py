"""The pictures that notebook 01 alone draws."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.show import style
from nbtorchrun import palette

WIDE, HIGH = 1.5, 0.62  # the size of a box
ARROW = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
PLACES = {"a": (0, 0.75), "b": (0, -0.75), "v0": (2.6, -0.1), "v1": (5.2, 0.45)}
FORMULAS = {"a": "a", "b": "b", "v0": "v0 = a + b", "v1": "v1 = v0 · a"}
THIN = 0.12  # how wide we draw a line of the tape without a product; a product is 1 wide


def _box(
    axes: Axes, x: float, y: float, words: str, colour: str, wide: float = WIDE, waits: bool = False
) -> None:
    """Words in a box; what may wait is paler, with a dashed frame."""
    look = palette.ground(colour, 0.12 if waits else palette.GROUND) | {"lw": 1.4, "zorder": 2}
    look |= {"linestyle": "--"} if waits else {}
    style.box(axes, x - wide / 2, y - HIGH / 2, wide, HIGH, **look)
    style.centred(axes, x, y, words, zorder=3)


def slopes(values: Mapping[str, float], slope: Mapping[tuple[str, str], float]) -> None:
    """(a + b) * a as a graph: values in the boxes, and how fast each arrow's end moves.

    Args:
        values: the value of each variable, by name.
        slope: by the names of an arrow's start and end.
    """
    title = "Nudge a, and the result moves along two paths: 1 · 2 + 5 = 7"
    axes = style.axes(2.7, title)
    axes.axis("off")
    for (start, end), number in slope.items():
        (x, y), (x1, y1) = PLACES[start], PLACES[end]
        tail, head, middle = (x + WIDE / 2, y), (x1 - WIDE / 2, y1), 0.0
        look = ARROW
        if (start, end) == ("a", "v1"):  # above the box between them
            tail, head = (x + WIDE / 2, y + HIGH / 4), (x1, y1 + HIGH / 2)
            look, middle = ARROW | {"connectionstyle": "arc3,rad=-0.22"}, 0.64
        axes.annotate("", head, tail, arrowprops=look, zorder=1)
        place = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2 + middle
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        style.centred(axes, *place, f"{number:g}", weight="bold", bbox=ground, zorder=2)
    for name, (x, y) in PLACES.items():
        colour = palette.ACTIVITY["forward"] if name.startswith("v") else "#999999"
        _box(axes, x, y, f"{FORMULAS[name]}\n{values[name]:g}", colour)
    axes.set(xlim=(-0.9, 6.1), ylim=(-1.3, 1.75))
    plt.show()


def broadcast(sums: Tensor, bias: Tensor, arriving: Tensor, gradient: Tensor) -> None:
    """A bias that is added to each row: copied to each row, and the rows' gradients added up.

    Args:
        sums: x + bias, for an x of zeros: the bias in each row.
        bias: what is added to each row.
        arriving: the gradient of the sums.
        gradient: the gradient of the bias.
    """
    title = "Forward copies the bias to each row; backward adds up what the rows give"
    axes = style.axes(2.6, title)
    axes.axis("off")
    halves = (
        (0.0, "forward", "bias", bias, "x + bias, with x = 0", sums),
        (4.6, "backward", "gradient of the bias", gradient, "gradient of x + bias", arriving),
    )
    for left, activity, one, few, all_, many in halves:
        look = palette.ground(palette.ACTIVITY[activity])
        for y, row in [(2.2, few), *((0.7 - at * 0.5, row) for at, row in enumerate(many))]:
            for column, number in enumerate(row.tolist()):
                style.box(axes, left + column, y, 0.62, 0.42, **look)
                style.centred(axes, left + column + 0.31, y + 0.21, f"{number:g}")
        for column in range(len(few)):
            _routes(axes, left + column, len(many), activity)
        middle = left + 1.45
        style.centred(axes, middle, 2.85, one, weight="bold")
        style.centred(axes, middle, -0.1, all_, weight="bold")
    axes.set(xlim=(-0.2, 7.8), ylim=(-0.35, 3.1))
    plt.show()


def _routes(axes: Axes, left: float, rows: int, activity: str) -> None:
    """One column of `broadcast`: an arrow to each row, or from each row into a sum."""
    node, lanes = (
        (left + 0.31, 1.62),
        [left + 0.31, *(left + 0.72 + 0.1 * n for n in range(rows - 1))],
    )
    look = {"color": palette.NEUTRAL, "lw": 1.3, "zorder": 1}
    for row, lane in enumerate(lanes):
        if row == 0:
            near, path = (lane, 1.14), []
        else:  # beside the rows above it
            y = 0.91 - 0.5 * row
            near, path = (left + 0.64, y), [(lane, y), (lane, node[1])]
        stops = [near, *path, node]
        if activity == "forward":
            stops.reverse()
        axes.plot(*zip(*stops[:-1], strict=True), **look)
        axes.annotate(
            "",
            stops[-1],
            stops[-2],
            arrowprops=ARROW | {"shrinkB": 0 if activity == "forward" else 7},
            zorder=1,
        )
    if activity == "forward":
        axes.plot([node[0]] * 2, [2.18, node[1]], **look)
        axes.plot(*node, "o", markersize=4, color=palette.NEUTRAL)
    else:
        axes.annotate("", (node[0], 2.18), node, arrowprops=ARROW | {"shrinkA": 7}, zorder=1)
        axes.plot(
            *node, "o", markersize=13, markeredgecolor=palette.NEUTRAL, color="white", zorder=3
        )
        style.centred(axes, *node, "+", weight="bold", zorder=4)


def matmul(rows: int = 2, inner: int = 3, columns: int = 4) -> None:
    """C = A B: the row of C that one number of A feeds, and the row of G that returns to it.

    Args:
        rows: of A and of C.
        inner: columns of A, and rows of B.
        columns: of B and of C.
    """
    title = "One number of A feeds one row of C; the same row of G brings its gradient back"
    axes = style.axes(3.4, title)
    axes.axis("off")
    across, high, wide = inner + 0.6, 3.0 + inner, inner + 0.6 + columns
    factors = [f"B_{{k{column + 1}}}" for column in range(columns)]
    halves = (
        (0.0, "forward", "$C = A B$", "A", "C"),
        (wide + 0.9, "backward", "$∂L/∂A = G B^T$", "gradient of A", "G"),
    )
    for left, activity, formula, one, many in halves:
        colour, side = palette.ACTIVITY[activity], left + across
        word = "$A_{ik}$" if many == "C" else "of $A_{ik}$"
        _matrix(axes, left, 0, (rows, inner), colour, {(0, 1): word})
        words = {(0, at): f"${many}_{{i{at + 1}}}$" for at in range(columns)}
        _matrix(axes, side, 0, (rows, columns), colour, words)
        words = {(1, at): f"${factor}$" for at, factor in enumerate(factors)}
        _matrix(axes, side, high, (inner, columns), palette.ACTIVITY["forward"], words)
        _uses(axes, left + 1.5, [side + at + 0.5 for at in range(columns)], factors, activity)
        for middle, y, label in (
            (left + inner / 2, -rows - 0.55, f"{one} (n, k)"),
            (side + columns / 2, -rows - 0.55, f"{many} (n, m)"),
            (side + columns / 2, high + 0.55, "B (k, m)"),
            (left + inner / 2, high + 0.55, activity),
        ):
            style.centred(axes, middle, y, label, weight="bold")
        style.centred(axes, left + inner / 2, high - 0.5, formula)
    axes.set(xlim=(-0.1, 2 * wide + 1.0), ylim=(-rows - 1.0, high + 1.0))
    plt.show()


def _matrix(
    axes: Axes,
    left: float,
    top: float,
    shape: tuple[int, int],
    colour: str,
    words: Mapping[tuple[int, int], str],
) -> None:
    """A matrix of boxes; those with words are filled."""
    for row in range(shape[0]):
        for column in range(shape[1]):
            look = palette.ground(colour, palette.GROUND if (row, column) in words else 0.0)
            style.box(axes, left + column, top - row - 1, 1, 1, **look)
    for (row, column), word in words.items():
        style.centred(axes, left + column + 0.5, top - row - 0.5, word, zorder=3)


def _uses(
    axes: Axes, one: float, many: Sequence[float], factors: Sequence[str], activity: str
) -> None:
    """From a number of A to each product in a row of C, or from a row of G back into a sum."""
    look = {"color": palette.NEUTRAL, "lw": 1.3, "zorder": 1}
    lanes = [1.35 + 0.35 * at for at in range(len(many))]
    node = sum(lanes) / len(lanes)
    for x, lane, factor in zip(many, lanes, factors, strict=True):
        if activity == "forward":
            axes.plot([one, x, x], [node, node, 0.9], **look)
            axes.annotate("", (x, 0.04), (x, 0.9), arrowprops=ARROW, zorder=1)
            axes.plot(x, node, "o", markersize=4, color=palette.NEUTRAL)
        else:
            axes.plot([x, x], [0, lane], **look)
            axes.annotate("", (one + 0.3, lane), (x, lane), arrowprops=ARROW, zorder=1)
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        style.centred(axes, x, 0.72, f"\N{MULTIPLICATION SIGN}${factor}$", bbox=ground, zorder=2)
    if activity == "forward":
        axes.plot([one, one], [0, node], **look)
        words = "one term of each $C_{ij}$"
        style.centred(axes, one, node + 0.45, words, color=style.GREY)
        return
    bottom, top = lanes[0] - 0.25, lanes[-1] + 0.25
    frame = {"facecolor": "white", "edgecolor": palette.NEUTRAL, "zorder": 3}
    style.box(axes, one - 0.3, bottom, 0.6, top - bottom, **frame)
    style.centred(axes, one, node, "+", weight="bold", zorder=4)
    axes.annotate("", (one, 0.04), (one, bottom), arrowprops=ARROW, zorder=1)


def kept(batches: Sequence[int], parameters: float, activations: Sequence[float]) -> None:
    """What a forward pass leaves in memory, by batch.

    Args:
        batches: rows in each batch.
        parameters: megabytes of the weights.
        activations: megabytes kept for the backward pass, for each batch.
    """
    title = "Twice the batch keeps twice the activations; the parameters stay the same"
    axes = style.axes(2.9, title, "rows in the batch", "MB")
    places = range(len(batches))
    sizes = [parameters] * len(batches)
    axes.bar(places, sizes, 0.6, color=palette.MEMORY["parameters"], label="parameters")
    look = {"color": palette.MEMORY["activations"], "label": "kept for the backward pass"}
    axes.bar(places, activations, 0.6, bottom=sizes, **look)
    for place, size in zip(places, activations, strict=True):
        style.centred(axes, place, parameters + size, f"{size:.1f} kept", va="bottom")
    axes.set_xticks(places, [f"{batch:,}" for batch in batches])
    axes.set_ylim(0, 1.15 * (parameters + max(activations)))
    axes.legend(loc="upper left", frameon=False)
    plt.show()


def lives(lines: Sequence[Any], kept: Sequence[Iterable[str]], given: str = "x") -> None:
    """Layers y = tanh(x W) forward and backward, and from when to when each kept tensor is needed.

    Args:
        lines: of the tape, as the forward pass left it.
        kept: the names that each line keeps for its rule.
        given: the name of the first layer's input, whose gradient nobody wants.
    """
    clock, layer, blocks = 0.0, 0, []
    born, last = {given: 0.0}, {}
    for line in lines:
        work = int(line.op == "matmul")
        layer += work
        blocks.append(("forward", layer, work, clock))
        clock += work or THIN
        if line.op == "tanh":
            born[line.outputs[0]] = clock
    middle = clock
    for line, names in zip(reversed(lines), reversed(kept), strict=True):
        work = len({*line.inputs} - {given}) if line.op == "matmul" else 0  # a product for each
        blocks.append(("backward", layer, work, clock))
        clock += work or THIN
        layer -= line.op == "matmul"
        last |= dict.fromkeys(born.keys() & names, clock)  # a later use replaces an earlier one

    counts = dict.fromkeys(("forward", "backward"), 0)
    for name, _, work, _ in blocks:
        counts[name] += work
    one, all_ = counts["forward"], sum(counts.values())
    title = f"{all_} products, where forward alone has {one}; most is kept when forward ends"
    axes = style.axes(3.1, title)
    axes.axis("off")
    for name, x in (("forward", middle / 2), ("backward", (middle + clock) / 2)):
        style.centred(axes, x, -1.55, f"{name}: {counts[name]} products", weight="bold")
    for name, layer, work, start in blocks:
        look = palette.ground(palette.ACTIVITY[name]) | {"linewidth": 1.0}
        for at in range(work):
            style.box(axes, start + at, -0.75, 1, 0.75, **look)
            style.centred(axes, start + at + 0.5, -0.375, "product", fontsize=8)
        if not work:
            style.box(axes, start, -0.75, THIN, 0.75, **look)
            continue
        style.centred(axes, start + work / 2, -1.05, f"layer {layer}")
        now = sum(born[each] <= start < last[each] for each in born)
        style.centred(axes, start + work / 2, len(born) + 0.75, str(now))
    style.centred(axes, middle, -1.05, "loss")
    most = sum(born[each] <= middle < last[each] for each in born)
    style.centred(axes, middle, len(born) + 0.75, str(most), weight="bold")
    beside = {"x": -0.2, "ha": "right", "fontsize": 9, "va": "center"}
    for row, name in enumerate(born):
        look = {"facecolor": palette.MEMORY["activations"], "edgecolor": palette.NEUTRAL}
        style.box(axes, born[name], row + 0.2, last[name] - born[name], 0.6, linewidth=0.8, **look)
        axes.text(y=row + 0.5, s=f"y of layer {row}" if row else given, **beside)
    axes.text(y=len(born) + 0.75, s="tensors kept", **beside, weight="bold")
    axes.plot([middle, middle], [-0.75, len(born) + 0.4], "--", color=palette.NEUTRAL, lw=1.2)
    words = "thin boxes, not to scale: tanh and the loss"
    axes.text(clock, len(born) + 1.5, words, ha="right", va="center", fontsize=9, color=style.GREY)
    axes.set(xlim=(-1.6, clock + 0.1), ylim=(len(born) + 1.8, -1.9))
    plt.show()


def two_products(layers: int = 3) -> None:
    """The backward pass of a chain of products: what the next line waits for, and what it doesn't.

    Args:
        layers: how many matrices the chain has.
    """
    title = "Only the upper row makes the next step wait; the lower row can be done at any time"
    axes = style.axes(2.9, title)
    axes.axis("off")
    backward = palette.ACTIVITY["backward"]
    step, wide = 2.5, 1.75
    right = layers * step
    style.centred(axes, right, 0.75, "loss", weight="bold")
    tail = (right - 0.3, 0.75)
    for place, layer in enumerate(range(layers, 0, -1)):
        x = right - (place + 1) * step + 0.55
        arriving = f"$G_{layer}$"
        axes.annotate("", (x + wide / 2, 0.75), tail, arrowprops=ARROW, zorder=1)
        style.centred(axes, (x + wide / 2 + tail[0]) / 2, 0.93, arriving)
        leaving = "gradient of x" if layer == 1 else f"$G_{layer - 1}$"
        words = f"layer {layer}\n{leaving}\n= $G_{layer} W_{layer}^T$"
        _box(axes, x, 0.75, words, backward if layer > 1 else "#999999", wide)
        branch = (x + wide / 2 + tail[0]) / 2  # G goes left, and down to the weight's product
        axes.plot([branch, branch], [0.75, -0.5], color=palette.NEUTRAL, lw=1.3, zorder=1)
        axes.annotate("", (x + wide / 2, -0.5), (branch, -0.5), arrowprops=ARROW, zorder=1)
        words = f"gradient of $W_{layer}$\n= $X_{layer}^T G_{layer}$"
        _box(axes, x, -0.5, words, backward, wide, waits=True)
        tail = (x - wide / 2, 0.75)
    style.centred(axes, x, 0.31, "only if x needs it", fontsize=9, color=style.GREY)
    axes.text(right + 0.45, 0.75, "needed\nat once", va="center", fontsize=9, color=style.GREY)
    axes.text(right + 0.45, -0.5, "can wait", va="center", fontsize=9, color=style.GREY)
    axes.set(xlim=(-0.7, right + 1.6), ylim=(-0.95, 1.25))
    plt.show()


def ready(moments: Mapping[str, float]) -> None:
    """When each layer's gradient is ready, and how long it could travel.

    Args:
        moments: of each layer in the order in which they are ready, as a share of the pass.
    """
    first, share = next(iter(moments.items()))
    title = f"The gradient of {first} could travel during {1 - share:.0%} of the backward pass"
    axes = style.axes(2.5, title, "percent of the backward pass")
    names = list(moments)
    begins = [100 * moment for moment in moments.values()]
    axes.barh(names, begins, color=palette.ACTIVITY["backward"], label="not ready yet")
    rest = [100 - begin for begin in begins]
    look = {"color": palette.ACTIVITY["message"], "label": "ready: could travel"}
    axes.barh(names, rest, left=begins, **look)
    axes.set_xlim(0, 100)
    axes.legend(ncols=2, loc="upper left", bbox_to_anchor=(0, -0.28), frameon=False)
    plt.show()


def digits(images: Sequence, labels: Sequence) -> None:
    """Ten digits in a row, each with its label."""
    figure, all_axes = plt.subplots(1, 10, figsize=(8, 1.3), layout="constrained")
    figure.suptitle("Ten held-out digits and their labels", x=0.01, ha="left", fontsize=10)
    for axes, image, label in zip(all_axes, images, labels, strict=False):
        axes.imshow(image, cmap="Greys")
        axes.set_title(int(label), fontsize=9)
        axes.axis("off")
    plt.show()


def errors(steps: Sequence[float], found: Sequence[float]) -> None:
    """The error of finite differences over the step."""
    axes = style.axes(
        2.8, "The best step is neither the largest nor the smallest", "step h", "error"
    )
    axes.loglog(steps, found, "o-", markersize=4, color=palette.NEUTRAL)
    axes.annotate("rounding: grows like 1/h", (3e-12, 1e-4), fontsize=9, color=style.GREY)
    look = {"fontsize": 9, "color": style.GREY, "ha": "right"}
    axes.annotate("the formula: grows like h²", (8e-3, 3e-4), **look)
    axes.grid(alpha=0.25)
    plt.show()


def losses(right: Sequence[Sequence[float]], wrong: Sequence[Sequence[float]]) -> None:
    """The losses of several trainings with the right rule, and as many with a wrong one."""
    title = "A wrong gradient learns the digits too, a little more slowly"
    axes = style.axes(3.0, title, "step", "loss, nats per digit")
    for curves, words, colour, style_of in (
        (right, "right relu", palette.NEUTRAL, "-"),
        (wrong, "wrong relu", palette.WRONG, "--"),
    ):
        for number, curve in enumerate(curves):
            label = f"{words}, {len(curves)} starts" if not number else None
            smooth = [sum(curve[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(curve))]
            axes.plot(smooth, style_of, color=colour, lw=1.2, label=label)
    axes.set_yscale("log")
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False, title="mean of the last 10 steps")
    plt.show()
