"""Which rank holds what: before and after a collective, and in each step of an all-reduce."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette
from nbtorchrun.formats import number
from nbtorchrun.runs import Run

Held = Mapping[int, Sequence[float]]  # rank -> its numbers
Step = dict[int, dict[str, Any]]  # rank -> what it reported: `holds`, `sends`, perhaps `to`

CELL, ROW = 0.86, 0.78  # the share of a place's width and height that a box fills
NAMES, ARROW = 1.6, 3.0  # places for the ranks' names and for the arrow
PLACES = (10.0, 16.0)  # in a column: with two columns, and with one
STEPS = 3  # side by side
GREEN = "#009E73"  # the more ranks are in a sum, the darker


def collective(run: Run, *, title: str) -> None:
    """Draw what each rank holds before and after each collective that `run` reported.

    A number has the colour of the rank that held it before. A number that no rank held before was
    computed from all ranks, and has a stripe in the colour of each.

    Args:
        run: its ranks called `report(collective=NAME, before=[...], after=[...])`, lists of
            numbers, `[]` for nothing. The numbers before should differ from rank to rank.

    Raises:
        ValueError: no rank reported a collective.
    """
    held: dict[str, tuple[Held, Held]] = {}
    for report in run.reports:
        if "collective" in report:
            before, after = held.setdefault(report["collective"], ({}, {}))
            before[report["rank"]], after[report["rank"]] = report["before"], report["after"]
    if not held:
        raise ValueError(
            "no rank reported a collective: "
            'call report(collective="broadcast", before=[...], after=[...]) on every rank'
        )
    needed = max(
        NAMES + _widest(before) + ARROW + _widest(after) for before, after in held.values()
    )
    columns = 2 if len(held) > 1 and needed <= PLACES[0] else 1
    rows, ranks = -(-len(held) // columns), len(run.ranks)
    every = style.panels(rows, columns, 0.4 + rows * (0.45 + 0.3 * ranks), title, bare=True)
    for axes in every:
        axes.set_xlim(0, max(needed, PLACES[columns == 1]))
    for axes, (name, (before, after)) in zip(every, held.items(), strict=False):
        stages(axes, ranks, {"before": before, "after": after}, [name])
    plt.show()


def _widest(held: Held) -> int:
    """The length of the longest list that a rank holds."""
    return max(map(len, held.values()))


def stages(
    axes: Axes,
    ranks: int,
    held: Mapping[str, Mapping[int, Sequence[float | None]]],
    calls: Sequence[str],
) -> float:
    """Draw a row for each rank, with what it holds in each stage, and an arrow for each call.

    Args:
        axes: to draw on.
        ranks: how many there are.
        held: the heading of a stage -> rank -> its numbers; None is an empty place.
        calls: the names beside the arrows, from one stage to the next.

    Returns:
        where the last stage ends.
    """
    first = next(iter(held.values()))
    owner = {value: rank for rank in sorted(first, reverse=True) for value in first[rank]}
    axes.set_ylim(ranks, -0.75)
    for rank in range(ranks):
        axes.text(0.2, rank + 0.5, f"rank {rank}", va="center")
        axes.plot([0.05, 0.05], [rank + 0.2, rank + 0.8], color=palette.colour(rank), linewidth=3)
    left = NAMES
    for stage, (when, of_rank) in enumerate(held.items()):
        if stage:
            head, tail = (left - 0.3, ranks / 2), (left - ARROW + 0.1, ranks / 2)
            axes.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": style.GREY})
            words = calls[stage - 1]
            style.centred(axes, left - ARROW / 2, ranks / 2 - 0.12, words, va="bottom")
        axes.text(left, -0.3, when, va="center", color=style.GREY)
        for rank in range(ranks):
            _boxes(axes, left, rank, of_rank.get(rank, ()), owner, ranks)
        left += _widest(of_rank) + ARROW
    return left - ARROW


def _boxes(
    axes: Axes,
    left: float,
    row: int,
    held: Sequence[float | None],
    owner: dict[float, int],
    ranks: int,
) -> None:
    """The numbers that one rank holds, side by side; an empty frame where it holds none."""
    for place, value in enumerate(held or (None,)):
        x, middle = left + place, left + place + CELL / 2
        if value is None:
            style.box(axes, x, row, CELL, ROW, fill=False, edgecolor="#BBBBBB", linestyle=":")
            continue
        if value in owner:
            style.box(axes, x, row, CELL, ROW, **palette.ground(palette.colour(owner[value])))
            style.centred(axes, middle, row + ROW / 2, number(float(value)))
            continue
        style.box(axes, x, row, CELL, ROW, facecolor="white", edgecolor=style.GREY)
        for rank in range(ranks):
            stripe, width = x + CELL * rank / ranks, CELL / ranks
            look = {"facecolor": palette.colour(rank)}
            style.box(axes, stripe, row + ROW - 0.14, width, 0.14, **look)
        style.centred(axes, middle, row + ROW / 2 - 0.06, number(float(value)))


def steps(run: Run, *, title: str, parts: Sequence[str] = ()) -> None:
    """Draw every rank's chunks at the beginning of each step, and which chunks it sends.

    In JupyterLab, a slider chooses the step; the strip of all steps is visible everywhere.

    Args:
        run: a rank that sends in step S calls `report(step=S, holds=[...], sends=C)` when the step
            begins. C is a chunk or a list of them; `to=R` names the rank that gets it. Each rank
            reports once more at the end, with `sends=None`. `holds` has a number for each chunk.
            Rank r starts with 10^r, so the digits of a sum say whose values are in it.
        title: of the whole picture.
        parts: names of the parts of an all-reduce, with equally many steps in each. If they are
            given, each step says to which part it belongs, and the chunks are numbered.

    Raises:
        ValueError: no rank reported a step.
    """
    found: dict[int, Step] = {}
    for report in run.reports:
        if "holds" in report:
            found.setdefault(report["step"], {})[report["rank"]] = report
    if not found:
        raise ValueError("no rank reported a step: call report(step=0, holds=[...], sends=0)")
    all_steps = [found[step] for step in sorted(found)]
    for step, later in zip(all_steps[-2::-1], all_steps[:0:-1], strict=True):
        for rank, report in later.items():  # a rank that does not send holds what it holds next
            step.setdefault(rank, {"holds": report["holds"], "sends": None})

    def one(step: int) -> None:
        axes = style.axes(3.2, "", width=0.75 * style.WIDTH)
        axes.axis("off")
        _step(axes, all_steps, step, size=10, parts=parts)
        plt.show()

    style.slider(one, step={str(step + 1): step for step in range(len(all_steps))})
    columns = min(STEPS, len(all_steps))
    rows = -(-len(all_steps) // columns)
    every = style.panels(rows, columns, 0.5 + (0.35 + 0.28 * len(all_steps[0])) * rows, title, True)
    for step, axes in zip(range(len(all_steps)), every, strict=False):
        _step(axes, all_steps, step, size=6.5, parts=parts)
    plt.show()


def _step(axes: Axes, steps: list[Step], number: int, size: float, parts: Sequence[str]) -> None:
    """A row for each rank, a column for each chunk, a frame around what it sends, and to whom."""
    step, ranks = steps[number], len(steps[number])
    for rank, report in sorted(step.items()):
        holds, sends = report["holds"], report["sends"]
        style.centred(axes, -0.2, rank + 0.5, f"rank {rank}", ha="right", fontsize=size)
        for chunk, value in enumerate(holds):
            share = sum(digit != "0" for digit in str(value)) / ranks  # of the ranks in the sum
            tint = palette.ground(GREEN, 0.1 + (palette.GROUND - 0.1) * max(0, share - 1 / ranks))
            weight = "bold" if share == 1 else "normal"
            words = {"fontsize": size, "fontweight": weight}
            style.box(axes, chunk + 0.04, rank + 0.1, 0.92, 0.8, **tint | {"linewidth": 0})
            style.centred(axes, chunk + 0.5, rank + 0.5, f"{value:0{ranks}d}", **words)
            if chunk == sends or (isinstance(sends, list) and chunk in sends):
                frame = {"fill": False, "edgecolor": palette.colour(rank), "linewidth": 1.8}
                style.box(axes, chunk + 0.04, rank + 0.1, 0.92, 0.8, **frame)
        if "to" in report:
            look = {"ha": "left", "fontsize": size, "color": style.GREY}
            style.centred(axes, len(holds) + 0.12, rank + 0.5, f"→ rank {report['to']}", **look)
    axes.set_xlim(-1.3, len(holds) + 1.5 * any("to" in each for each in step.values()))
    axes.set_ylim(ranks, -0.6 if parts else -0.2)
    words = {"fontsize": size, "color": style.GREY}
    for chunk in range(len(step[0]["holds"]) if parts else 0):
        style.centred(axes, chunk + 0.5, -0.25, f"{chunk}", **words)
    if parts:
        style.centred(axes, -0.2, -0.25, "chunk", ha="right", **words)
    end = len(steps) - 1
    when = "at the end" if number == end else f"step {number + 1} begins"
    if parts and number < end:
        when += f" ({parts[number * len(parts) // end]})"
    axes.set_title(when, fontsize=size + 2)
