"""The pictures that notebook 15 alone draws."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor
from torch.nn.functional import cosine_similarity

from course_utils import palette, show

LABELS = {"dp": "dp: gradients", "pp": "pp: activations", "tp": "tp: inside each layer"}
SUM, SAME, OTHER = "#44AA99", "#BBBBBB", "#FFFFFF"  # what becomes of a gradient along an axis


def mesh(of: Any) -> None:
    """Eight ranks and their groups; `of` is a Mesh of 2 x 2 x 1 x 2."""
    title = "Eight ranks, three kinds of groups: Mesh(dp=2, pp=2, tp=2)"
    show.cube(of, title, lambda axis, groups: LABELS[axis])
    plt.show()


MODEL, DATA = "#88CCEE", "#DDCC77"


def parts(mesh: Any, stages: list[list[str]]) -> None:
    """What each of eight ranks has of the model and of the batch.

    Args:
        mesh: a Mesh of 2 x 2 x 1 x 2.
        stages: the names of the layers of each pipeline stage.
    """
    title = "What each rank has, in colour: its rows, its layers, its half of each matrix"
    panels = show.style.panels(2, 4, 5.2, title, bare=True)
    for rank, axes in enumerate(panels):
        at = mesh.coordinate(rank)
        axes.set(xlim=(-0.3, 6.2), ylim=(7.5, -1.2))
        show.style.centred(axes, 3.1, -0.75, f"rank {rank}", weight="bold")
        words = f"dp {at.dp}   pp {at.pp}   tp {at.tp}"
        show.style.centred(axes, 3.1, 6.5, words, fontsize=8.5)
        for row in range(4):  # of the batch
            mine = row // 2 == at.dp
            _there(axes, (0, 1 + row, 1.6, 0.9), mine, DATA)
            if mine:
                show.style.centred(axes, 0.8, row + 1.45, f"row {row}", fontsize=7.5)
        show.style.centred(axes, 0.8, 5.3, "batch", fontsize=7.5, color=show.style.GREY)
        names = [(stage, name) for stage, each in enumerate(stages) for name in each]
        for place, (stage, name) in enumerate(names):
            for half in range(2):
                mine = (stage, half) == (at.pp, at.tp)
                left = 2.3 + 1.9 * half
                _there(axes, (left, place, 1.8, 0.9), mine, MODEL)
                if mine:
                    show.style.centred(axes, left + 0.9, place + 0.45, name, fontsize=7.5)
    plt.show()


def _there(axes: Axes, where: tuple[float, float, float, float], mine: bool, colour: str) -> None:
    """A piece that a rank has, in colour, or one that it lacks, as an outline."""
    outline = {"facecolor": "none", "edgecolor": "#BBBBBB", "lw": 0.7}
    look = palette.ground(colour) if mine else outline
    show.style.box(axes, *where, **look)


AXIS = show.meshes.AXIS | {"cp": "#999933"}  # no rank has these colours
PARTS = {  # of a step, by F or B and layer: (part of the layer, axis that talks, what about)
    "F first": [("", "tp", "sum")],
    "F block": [("attention", "cp", "K, V"), ("attention", "tp", "sum"), ("MLP", "tp", "sum")],
    "F end": [("", "pp", "send")],
    "B end": [("", "pp", "get")],
    "B block": [
        ("MLP", "tp", "sum"),
        ("attention", "cp", "K, V,\ndk, dv"),
        ("attention", "tp", "sum"),
    ],
    "B first": [("", "", "")],
}


def step_in_time(mesh: Any, layers: list[str], order: list[Any]) -> None:
    """The messages of rank 0, a rank of the first stage, in the order in which it starts them.

    Args:
        mesh: a Mesh of 2 x 2 x 2 x 2.
        layers: the names of the layers of the first stage.
        order: the actions of the first stage in one step.
    """
    title = "One training step: when does rank 0 talk to which group? (drawn, not measured)"
    axes = show.style.axes(5.2, title)
    axes.axis("off")
    places = {"tp": 1.3, "cp": 2.1, "pp": 2.9, "dp x cp": 3.7}  # the top of each lane
    wide = len(_pieces("F", layers))  # of one action, in messages
    end = wide * len(order) + 3
    axes.set(xlim=(-9.5, end + 0.2), ylim=(10.7, -0.1))
    _lanes(axes, mesh, places, 0.6, end)
    for number, action in enumerate(order):
        left = wide * number
        show.style.box(axes, left, 0.2, wide - 0.15, 0.8, fc="#EEEEEE", ec="#999999")
        show.style.centred(axes, left + wide / 2, 0.6, str(action))
        for place, (*_, axis, _) in enumerate(_pieces(action.kind, layers)):
            if axis:
                show.style.box(axes, left + place, places[axis], 0.8, 0.6, color=AXIS[axis], lw=0)
    show.style.box(axes, end - 3, 0.2, 3, 0.8, fc="#EEEEEE", ec="#999999")
    show.style.centred(axes, end - 1.5, 0.6, "mean", fontsize=8)
    for half, axis in enumerate(("dp", "cp")):
        top = places["dp x cp"] + 0.3 * half
        show.style.box(axes, end - 3, top, 3, 0.3, color=AXIS[axis], lw=0)
    _enlarged(axes, mesh, layers, order, end)
    plt.show()


def _pieces(kind: str, layers: list[str]) -> list[tuple[str, str, str, str]]:
    """The pieces of F or B on the first stage: (layer, part of it, axis, what about)."""
    names = [*layers, "end"] if kind == "F" else ["end", *reversed(layers)]
    keys = {name: name if name in ("first", "end") else "block" for name in names}
    return [(name, *part) for name in names for part in PARTS[f"{kind} {keys[name]}"]]


def _lanes(axes: Axes, mesh: Any, places: Mapping[str, float], height: float, end: float) -> None:
    """A lane for each group of rank 0, named at its left."""
    for name, top in places.items():
        group = next(ranks for ranks in mesh.groups(*name.split(" x ")) if 0 in ranks)
        others = [str(rank) for rank in sorted(group) if rank]
        words = f"{name}: rank{'s' * (len(others) > 1)} {', '.join(others)}"
        axes.text(-0.6, top + height / 2, words, ha="right", va="center", fontsize=9)
        axes.plot([0, end], [top + height / 2] * 2, color="#DDDDDD", lw=0.8, zorder=0)


def _enlarged(axes: Axes, mesh: Any, layers: list[str], order: list[Any], end: float) -> None:
    """The second and the third action of `step_in_time`, with words."""
    places = {"tp": 7.7, "cp": 8.7, "pp": 9.7}
    _lanes(axes, mesh, places, 0.85, end)
    wide = len(_pieces("F", layers))
    for x, target in ((wide - 0.1, 0), (3 * wide - 0.1, end)):
        axes.plot([x, x, target], [1.0, 4.5, 5.4], color="#999999", lw=0.8, ls=":", zorder=0)
    size = end / (2 * wide)  # of one message
    what = {"F": "forward", "B": "backward"}
    for number, action in enumerate(order[1:3]):
        left = wide * size * number
        words = f"{action}: {what[action.kind]} of micro-batch {action.microbatch}"
        show.style.centred(axes, left + wide * size / 2, 5.55, words, weight="bold")
        pieces = _pieces(action.kind, layers)
        for place, (_, _, axis, about) in enumerate(pieces):
            if axis:
                look = palette.ground(AXIS[axis])
                at = left + size * place
                show.style.box(axes, at, places[axis], size - 0.3, 0.85, **look)
                middle = places[axis] + 0.42
                show.style.centred(axes, at + size / 2 - 0.15, middle, about, fontsize=7.5)
        for top, depth in ((6.0, 1), (6.75, 2)):
            names = [piece[:depth] for piece in pieces]
            for name in dict.fromkeys(names):
                if name[-1] in ("", "end"):
                    continue
                at, length = left + size * names.index(name), size * names.count(name)
                show.style.box(axes, at, top, length - 0.3, 0.7, fc="#EEEEEE", ec="#999999")
                show.style.centred(axes, at + length / 2 - 0.15, top + 0.36, name[-1], fontsize=8)


def arrows(gradients: Mapping[str, Tensor]) -> None:
    """What two ranks found, as arrows: the right gradient, its half, and what rank 0 found."""
    title = "A wrong factor keeps the direction.\nA missing sum usually turns it."
    axes = show.style.axes(4.6, title, "gradient of weight 0", "gradient of weight 1", width=6.5)
    looks = zip(("#555555", "#44AA99", "#AA4499"), (7, 3.5, 3.5), strict=True)
    right, *_, own = gradients.values()
    tip = tuple(right.tolist())
    places = {  # of the words, beside the arrows
        "right": (tip[0] + 4, tip[1], "left"),
        "averaged once too often": (tip[0] / 2 - 6, tip[1] / 2 - 4, "right"),
        "own rows only": (0, 8, "left"),
    }
    for (name, found), (colour, width) in zip(gradients.items(), looks, strict=True):
        end = tuple(found.tolist())
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", end, (0, 0), arrowprops=arrow)
        label = name
        if found is not right:
            ratio = (found @ right / (right @ right)).item()
            cosine = cosine_similarity(found, right, dim=0).item()
            label = f"{name}:\nratio {ratio:.2f}, cosine {cosine:.2f}"
            foot = [ratio * value for value in tip]  # the nearest point on the right one
            axes.plot(*zip(end, foot, strict=True), color=colour, ls=":", lw=2)
        x, y, side = places[name]
        axes.text(x, y, label, color=colour, ha=side, va="center")
    lost = {
        "arrowstyle": "-|>,head_length=0.6,head_width=0.3",
        "color": "#882255",
        "lw": 1.8,
        "ls": (0, (4, 2)),
    }
    axes.annotate("", tip, tuple(own.tolist()), arrowprops=lost | {"shrinkA": 0, "shrinkB": 9})
    middle = ((own + right) / 2).tolist()
    words = "what rank 1 found:\nnever added"
    axes.text(middle[0] + 4, middle[1], words, color="#882255", va="center")
    axes.set(xlim=(-48, 92), ylim=(-76, 16))
    axes.set_aspect("equal")  # so that angles are true
    axes.plot(0, 0, "ko", ms=4)
    plt.show()


def token_terms(of: Any) -> None:
    """The tokens whose terms are in each rank's gradient, before and after sums over a mesh.

    Args:
        of: a Mesh of 2 x 1 x 2 x 1.
    """
    title = "Which tokens' terms are in each rank's gradient?"
    panels = iter(show.style.panels(3, 4, 4.6, title, bare=True))
    steps = {"after backward": (), "summed over dp": ("dp",), "summed over dp and cp": ("dp", "cp")}
    for step, axes_of in steps.items():
        for rank in range(4):
            axes = next(panels)
            axes.set(xlim=(-0.6, 4.6), ylim=(4.6, -1.1), aspect="equal")
            at = of.coordinate(rank)
            words = f"rank {rank}: dp {at.dp}, cp {at.cp}" if not axes_of else ""
            show.style.centred(axes, 2, -0.6, words, fontsize=9, weight="bold")
            if rank == 0:
                axes.text(-1.1, 2, step, ha="right", va="center", fontsize=9)
                axes.text(-0.3, 2, "4 rows", rotation=90, ha="center", va="center", fontsize=8)
                show.style.centred(axes, 2, 4.3, "4 positions", fontsize=8)
            groups = of.groups(*axes_of) if axes_of else [[rank]]
            members = next(ranks for ranks in groups if rank in ranks)
            places = [of.coordinate(member) for member in members]
            for row in range(4):
                for position in range(4):
                    cp = int(position in (1, 2))  # zigzag: an early and a late position each
                    there = any((row // 2, cp) == (place.dp, place.cp) for place in places)
                    _there(axes, (position, row, 0.9, 0.9), there, DATA)
    plt.show()


TERMS = {  # by kind of parameter: what its ranks have along dp, pp, cp and tp
    "matrix, cut by tp": "sum other sum other",
    "norm of a block, row-parallel bias": "sum other sum same",
    "norm or bias under sequence parallel": "sum other sum sum",
    "tied embedding, cut by tp": "sum sum sum other",
    "router, summed over ep = cp": "sum other same same",
    "expert, shared out over ep = cp": "sum other other same",
}
WORDS = {
    "sum": ("other terms: sum", SUM),
    "same": ("the same terms", SAME),
    "other": ("another parameter", OTHER),
}


def terms(more: bool = False) -> None:
    """For each kind of parameter and each axis: what its ranks have of the gradient."""
    rows = dict(list(TERMS.items())[: None if more else 2])
    height = 1.0 + 0.45 * len(rows)
    axes = show.style.axes(height, "Along each axis: must the gradient be summed?")
    axes.axis("off")
    axes.set(xlim=(0, 8), ylim=(len(rows) + 0.1, -0.75))
    for column, axis in enumerate(("dp", "pp", "cp", "tp")):
        show.style.centred(axes, 3.35 + 1.25 * column, -0.35, axis, weight="bold")
    for row, (kind, found) in enumerate(rows.items()):
        axes.text(2.6, row + 0.45, f"{row + 1}. {kind}", ha="right", va="center", fontsize=9)
        for column, each in enumerate(found.split()):
            words, colour = WORDS[each]
            left = 2.75 + 1.25 * column
            show.style.box(axes, left, row, 1.2, 0.9, **palette.ground(colour))
            show.style.centred(axes, left + 0.6, row + 0.45, words, fontsize=8)
    plt.show()


def token_weights(found: Tensor, right: float) -> None:
    """How much each token counts in the gradient of Megatron-LM#7513, and how much it should.

    Args:
        found: the weight of each token, those of 4 ranks one after another; 0 for padding.
        right: the weight that every valid token should have.
    """
    title = "Megatron-LM#7513, as reported: how much does each token count?"
    axes = show.style.axes(3.6, title, "token", "its weight in the gradient")
    places = range(len(found))
    for rank, members in enumerate(zip(*[iter(places)] * (len(found) // 4), strict=True)):
        look = palette.ground(palette.colour(rank))
        counted = [place for place in members if found[place] > 0]
        for place in counted:
            show.style.box(axes, place - 0.4, 0, 0.8, right, fc="none", ec="#999999", ls=":")
            axes.bar(place, found[place].item(), 0.8, **look)
            words = str(Fraction(found[place].item()).limit_denominator(100))
            show.style.centred(axes, place, found[place].item() / 2, words)
        middle = sum(members) / len(members)
        show.style.centred(axes, middle, 1.3 * right, f"rank {rank}", weight="bold")
        if not counted:
            show.style.centred(axes, middle, right / 2, "only padding", color=show.style.GREY)
        if rank:
            axes.axvline(members[0] - 0.5, color="#DDDDDD", lw=1, zorder=0)
    valid = int((found > 0).sum())
    axes.plot([-0.5, valid - 0.5], [right, right], color="black", ls="--", lw=1.2)
    words = f"right: {Fraction(right).limit_denominator(100)} for each token"
    axes.text(valid - 0.35, right, words, va="center", bbox={"fc": "white", "ec": "none", "pad": 1})
    axes.set(xlim=(-0.6, len(found) - 0.4), ylim=(0, 1.4 * right), yticks=(0, 0.05, 0.1, 0.15))
    axes.set_xticks(places, [place if found[place] > 0 else "pad" for place in places])
    plt.show()


def layouts() -> None:
    """A matrix of 4 x 4 on two ranks, under each of the four layouts."""
    title = "One matrix, two ranks, four layouts"
    panels = show.style.panels(1, 4, 2.5, title, bare=True)
    grids = {
        "Replicate": ("all", "all", "each has all of it"),
        "Shard(0)": ("top", "bottom", "each has some rows"),
        "Partial": ("term", "term", "A = A0 + A1"),
        "Varying": ("own", "own", "each has its own"),
    }
    for axes, (name, (first, second, words)) in zip(panels, grids.items(), strict=True):
        axes.set(xlim=(-0.2, 2.9), ylim=(2.4, -0.55), aspect="equal")
        show.style.centred(axes, 1.35, -0.35, name, weight="bold")
        for rank, part in enumerate((first, second)):
            _part(axes, 1.5 * rank, part, rank)
        if name == "Partial":
            show.style.centred(axes, 1.35, 0.6, "+", fontsize=13)
        show.style.centred(axes, 1.35, 1.95, words, fontsize=8)
    plt.show()


def _part(axes: Axes, left: float, part: str, rank: int) -> None:
    """What one rank has of a matrix: an outline, and what of it is there."""
    top, height = {"top": (0, 0.6), "bottom": (0.6, 0.6)}.get(part, (0, 1.2))
    outline = {"facecolor": "none", "edgecolor": "#999999", "linestyle": ":"}
    show.style.box(axes, left, 0, 1.2, 1.2, **outline)
    look = palette.ground(palette.colour(rank), 0.2 if part == "term" else 0.4)
    show.style.box(axes, left, top, 1.2, height, **look)
    inside = {"all": "A", "top": "A[:2]", "bottom": "A[2:]", "term": f"A{rank}"}
    words = inside.get(part, f"X{rank}")
    show.style.centred(axes, left + 0.6, top + height / 2, words)
    show.style.centred(axes, left + 0.6, 1.5, f"rank {rank}", fontsize=8)
