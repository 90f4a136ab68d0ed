"""What the ranks did over time: blocks of a script, messages, the actions of a pipeline."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette
from nbtorchrun.runs import Run

MESSAGE = "message"
BARRIER = "barrier"  # time in it is waiting
SHADES = {"F": 0.08, "B": palette.GROUND, "W": 0.2}  # of the rank's colour
HATCHES = {"W": "////"}  # W stands out from F and B, in grey too
KINDS = {"F": "forward", "B": "backward", "W": "gradients of the weights"}

Block = tuple[str, float, float]  # what was marked; its start and its end in seconds
Spans = Sequence[tuple[int, Any, float, float]]  # rank, action as F3 or F3.1, start, end


def timeline(run: Run, *, title: str) -> None:
    """Draw a lane for each rank with the blocks its script put between `mark(...)`.

    Blocks called `barrier` are waiting. If each rank has one, a line shows when the last arrives.
    """
    marks = run.timeline()
    names = list(dict.fromkeys(mark["name"] for mark in marks))
    ranks = sorted({mark["rank"] for mark in marks})
    axes = _milliseconds(0.7 + 0.7 * max(1, len(ranks)), title, names)
    for mark in marks:
        start, length = 1e3 * mark["start"], 1e3 * (mark["end"] - mark["start"])
        look = _look(mark["name"], names)
        axes.broken_barh([(start, length)], (mark["rank"] - 0.35, 0.7), **look)
    style.rank_ticks(axes, ranks)
    axes.set_xlim(left=0)
    arrivals = [1e3 * mark["start"] for mark in marks if mark["name"] == BARRIER]
    if len(arrivals) == len(ranks) > 1:
        _last_arrives(axes, max(arrivals))
    plt.show()


def overlap(run: Run, *, title: str) -> None:
    """Draw what rank 0 did in each version of a step, with its messages below.

    Args:
        run: a run whose script marked `VERSION, step NUMBER: WHAT`; messages are called `message`.
            The fastest step of each version is drawn, from its first mark on.
    """
    steps: dict[str, dict[str, list[Block]]] = defaultdict(lambda: defaultdict(list))
    for mark in run.timeline():
        if mark["rank"] == 0:
            step, _, what = mark["name"].partition(": ")
            version, _, number = step.partition(", step ")
            steps[version][number].append((what, mark["start"], mark["end"]))
    fastest = {version: min(own.values(), key=_seconds) for version, own in steps.items()}
    names = list(dict.fromkeys(what for step in fastest.values() for what, _, _ in step))
    names.sort(key=lambda name: name == MESSAGE)
    axes = _milliseconds(1.0 + 0.75 * len(fastest), title, names)
    for row, step in enumerate(fastest.values()):
        origin = min(start for _, start, _ in step)
        for what, start, end in step:
            message = what == MESSAGE
            axes.broken_barh(
                [(1e3 * (start - origin), 1e3 * (end - start))],
                (row + 0.08, 0.26) if message else (row - 0.34, 0.38),
                **_look(what, names),
                alpha=0.75 if message else 1,  # messages overlap
            )
    axes.set_yticks(range(len(fastest)), list(fastest))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    plt.show()


def _last_arrives(axes: Axes, milliseconds: float) -> None:
    """A line through all lanes; until then nobody could leave the barrier."""
    axes.axvline(milliseconds, color=palette.NEUTRAL, linestyle="--", linewidth=1.2)
    place = {"xy": (milliseconds, 1), "xycoords": axes.get_xaxis_transform()}
    look = {"ha": "center", "va": "bottom", "color": palette.NEUTRAL, "fontsize": 9}
    axes.annotate("the last arrives", xytext=(0, 3), textcoords="offset points", **place, **look)


def _look(name: str, names: list[str]) -> dict[str, Any]:
    """How a block is drawn: in the colour of its activity, or in one that `names` leave free.

    No rank's colour is taken; waiting is hatched.
    """
    if name in ("wait", BARRIER):
        return {"facecolor": palette.ACTIVITY["wait"], "hatch": "///", "edgecolor": "#888888"}
    free = [colour for usual, colour in palette.ACTIVITY.items() if usual not in (*names, "wait")]
    others = [each for each in names if each not in (*palette.ACTIVITY, BARRIER)]
    free = free or palette.COLOURS  # all of the usual activities are drawn as well
    mine = free[others.index(name) % len(free)] if name in others else palette.ACTIVITY[name]
    return {"facecolor": mine, "edgecolor": palette.outline(mine), "linewidth": 0.5}


def _seconds(step: list[Block]) -> float:
    """From the start of the first block to the end of the last one."""
    return max(end for _, _, end in step) - min(start for _, start, _ in step)


def _milliseconds(height: float, title: str, names: list[str]) -> Axes:
    """Axes over time; between title and picture stands which colour means what."""
    axes = style.axes(height, "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)
    handles = [plt.Rectangle((0, 0), 1, 1, **_look(name, names)) for name in names]
    axes.legend(handles, names, ncols=6, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    return axes


def schedules(
    panels: Mapping[str, Spans],
    *,
    title: str,
    unit: str,
    slide: Mapping[int, Mapping[str, Spans]] | None = None,
) -> None:
    """Draw a lane of actions for each rank; it waits where nothing is drawn.

    Args:
        panels: what stands above each picture, and its spans: (rank, action, start, end). The
            action's text is its kind, F, B or W, and the number of the micro-batch, as F3; of a
            rank's second stage F3.1.
        unit: what time is measured in.
        slide: the panels for other numbers of micro-batches; in JupyterLab a slider goes through
            them.
    """
    if slide:
        longest = max(map(_last, slide.values()))  # one axis for all: lengths can be compared

        def one(m: int) -> None:
            _schedules(slide[m], title, unit, longest)

        style.slider(one, m={str(m): m for m in slide})
    _schedules(panels, title, unit, _last(panels))


def _last(panels: Mapping[str, Spans]) -> float:
    """When the last action ends."""
    return max(end for spans in panels.values() for *_, end in spans)


def _schedules(panels: Mapping[str, Spans], title: str, unit: str, last: float) -> None:
    ranks = [1 + max(rank for rank, *_ in spans) for spans in panels.values()]
    height = 0.9 + sum(0.42 + 0.3 * count for count in ranks)
    every = style.panels(len(panels), 1, height, title, sharex=True, height_ratios=ranks)
    for axes, (name, spans), count in zip(every, panels.items(), ranks, strict=True):
        _schedule(axes, spans, count, last)
        axes.set_title(name, loc="left", fontsize=10)
    every[-1].set_xlabel(unit)
    used = {str(action)[0] for spans in panels.values() for _, action, *_ in spans}
    kinds = [kind for kind in KINDS if kind in used]
    grounds = [palette.ground("#000000", SHADES[kind]) for kind in kinds]
    boxes = [plt.Rectangle((0, 0), 1, 1, linewidth=0.6, **ground) for ground in grounds]
    for box, kind in zip(boxes, kinds, strict=True):
        box.set_hatch(HATCHES.get(kind))
    look = {"ncols": 3, "frameon": False, "loc": "outside lower right", "fontsize": 9}
    every[0].figure.legend(boxes, [KINDS[kind] for kind in kinds], **look)
    plt.show()


def _schedule(axes: Axes, spans: Spans, ranks: int, last: float) -> None:
    """One schedule: its numbers are those of the micro-batches, with a prime on a second stage."""
    for rank, action, start, end in spans:
        text = str(action)
        axes.broken_barh(
            [(start, end - start)],
            (rank - 0.42, 0.84),
            **palette.ground(palette.colour(rank), SHADES[text[0]]),
            hatch=HATCHES.get(text[0]),
            linewidth=0.6,
        )
        if end - start > last / 70:
            number, _, chunk = text[1:].partition(".")
            words = number + "\u2032" * int(chunk or 0)
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.7}
            look = {"bbox": ground} if text[0] in HATCHES else {}
            style.centred(axes, (start + end) / 2, rank, words, fontsize=7, **look)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)], fontsize=8)
    axes.set_ylim(ranks - 0.5, -0.5)
    axes.set_xlim(0, last)
