"""The graph on a tape, forward and backward."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette

SYMBOLS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "matmul": "@"}  # noqa: RUF001
LEAF, FORWARD, BACKWARD = "#999999", palette.ACTIVITY["forward"], palette.ACTIVITY["backward"]
KEPT = palette.ACTIVITY["copy"]
COLUMN, ROW, WIDE, HIGH = 1.5, 0.95, 1.0, 0.52  # distances of boxes, and their size

Places = dict[str, tuple[float, float]]


def tape(
    entries: Sequence[Any],
    *,
    title: str,
    forward: int | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Draw the graph on a tape: forward from left to right; below, backward from right to left.

    A dashed arrow marks a value of the forward pass that the backward pass uses.

    Args:
        entries: the tape of tape.py; an entry has `inputs` and `outputs` (names) and `op`.
        forward: how many entries the tape had before `grad`; None for all.
        notes: what to say below a variable, by its name: its value, or what it means.

    Raises:
        ValueError: the tape is empty.
    """
    if not entries:
        raise ValueError("the tape is empty: compute something before you draw it")
    entries = list(entries)
    ahead, back = entries[:forward], entries[len(entries[:forward]) :]
    places = layout(ahead)
    made_ahead = set(places)
    right = max(x for x, _ in places.values())
    low = min(y for _, y in places.values())
    for name, (x, y) in layout(back, apart=made_ahead).items():
        places[name] = (right - x, low + y - 1.6 * ROW)
    xs, ys = zip(*places.values(), strict=True)
    axes = style.axes(0.6 + 0.75 * (max(ys) - min(ys) + 1), title)
    axes.set_xlim(min(xs) - 0.7, max(xs) + 0.7)
    axes.set_ylim(min(ys) - 0.6, max(ys) + 1.0)
    axes.axis("off")
    formulas = {entry.outputs[0]: formula(entry) for entry in entries}
    for name, (x, y) in places.items():
        colour = BACKWARD if name not in made_ahead else FORWARD if name in formulas else LEAF
        look = {"fc": "white", "ec": colour, "lw": 1.6, "zorder": 2}
        style.box(axes, x - WIDE / 2, y - HIGH / 2, WIDE, HIGH, **look)
        words = f"{name}\n{formulas[name]}" if name in formulas else name
        style.centred(axes, x, y, words, zorder=3)
        said = (notes or {}).get(name, "")
        look = {"va": "top", "fontsize": 8, "color": style.GREY, "zorder": 3}
        style.centred(axes, x, y - HIGH / 2 - 0.04, said, **look)
    for entry in entries:
        for name in dict.fromkeys(entry.inputs):
            kept = name in made_ahead and entry.outputs[0] not in made_ahead
            _arrow(axes, places[name], places[entry.outputs[0]], kept)
    colours = {"leaf": LEAF, "forward": FORWARD}
    colours |= {"backward": BACKWARD, "value used by backward": KEPT} if back else {}
    handles = [
        plt.Line2D([], [], color=colour, lw=2, ls="--" if colour == KEPT else "-")
        for colour in colours.values()
    ]
    place = {"loc": "lower left", "bbox_to_anchor": (0, -0.12)}
    axes.legend(handles, colours, ncols=4, frameon=False, **place)
    plt.show()


def layout(entries: Sequence[Any], apart: set[str] = frozenset()) -> Places:
    """Where each variable goes: one column right of its inputs; names in `apart` are left out."""
    column: dict[str, int] = {}
    for entry in entries:
        inputs = [name for name in entry.inputs if name not in apart]
        column |= {name: 0 for name in inputs if name not in column}
        deepest = max((column[name] for name in inputs), default=-1)
        column |= {name: deepest + 1 for name in entry.outputs}
    made = {name for entry in entries for name in entry.outputs}
    for leaf in set(column) - made:  # just left of where it is used first
        column[leaf] = min(column[e.outputs[0]] for e in entries if leaf in e.inputs) - 1
    places, filled = {}, {}
    for name, x in column.items():
        row = filled[x] = filled.get(x, -1) + 1
        places[name] = (x * COLUMN, -row * ROW)
    return places


def formula(entry: Any) -> str:
    """What an entry computed: `a + b`."""
    if entry.op in SYMBOLS and len(entry.inputs) == 2:
        return f" {SYMBOLS[entry.op]} ".join(entry.inputs)
    return f"{entry.op}({', '.join(entry.inputs)})"


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], kept: bool) -> None:
    way = 0 if kept else 1 if end[0] > start[0] else -1  # down, to the right, to the left
    tail = (start[0] + way * WIDE / 2, start[1] - (HIGH / 2 if kept else 0))
    head = (end[0] - way * WIDE / 2, end[1] + (HIGH / 2 if kept else 0))
    line = {"arrowstyle": "->", "color": KEPT if kept else "#555555", "lw": 1.1}
    if kept:  # bent, so that boxes in between do not hide it
        line |= {"linestyle": "--", "connectionstyle": "arc3,rad=-0.35"}
        if abs(end[0] - start[0]) < COLUMN / 2:  # straight below: past the right side of the boxes
            tail, head = (start[0] + WIDE / 2, start[1]), (end[0] + WIDE / 2, end[1])
    elif abs(end[0] - start[0]) > 1.5 * COLUMN:  # it passes over a column: above its boxes
        tail, head = (start[0], start[1] + HIGH / 2), (end[0], end[1] + HIGH / 2)
        line |= {"connectionstyle": f"arc3,rad={-0.15 * way}"}
    axes.annotate("", xy=head, xytext=tail, arrowprops=line, zorder=1)
