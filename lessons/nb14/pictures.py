"""The pictures that notebook 14 alone draws."""

import itertools
import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from course_utils.show import style
from nbtorchrun import palette

# What a resumed run forgot: Paul Tol's bright palette (2021), which no rank and no activity has.
FORGOT = {
    "model": "#EE6677",
    "schedule": "#228833",
    "optimizer": "#4477AA",
    "place": "#CCBB44",
    "random": "#AA3377",
}
SHOWN = "model", "schedule"  # what is seen in the loss
RESUMED, AFTER = range(21, 41), "step (resumed after step 20)"
# What can be loaded after a save was killed.
LEFT = {
    None: ("x", "#EE6677", "nothing"),
    0: ("o", "#4477AA", "the old one"),
    -1: ("o", "#228833", "the new one"),
}
# `who_notices` for machines on which two hosts can't be built: measured on 2 cores.
SAVED_TIMES = {
    "a rank": ([(0, 0.09), (1, 0.31), (2, 0.08)], 3.6),
    "an agent": ([(0, 0.09), (1, 0.1)], None),
    "the agent with the store": ([(2, 0.03), (3, 0.03)], None),
    "a link, for good": ([(0, 3.05), (1, 3.04), (2, 3.05), (3, 3.04)], None),
    "a link, for 5 s": ([(0, 3.05), (1, 3.04), (2, 3.06), (3, 3.06)], 9.0),
}
PARTS = {  # in the order in which a step reads them
    "place": "how many batches\nare used",
    "random": "the generators\nthat dropout uses",
    "model": "the weights",
    "optimizer": "moments, and\nits step count",
    "schedule": "learning rate, and\nits position",
}


def two_hosts() -> None:
    """Two hosts with an agent and two ranks each, a store and a link; and where they break."""
    axes = style.axes(3.2, "Two hosts, and the four things that we break")
    for host in (0, 1):
        left = 7.2 * host
        style.box(axes, left, 0, 5.2, 4, facecolor="none", edgecolor=style.GREY, lw=1)
        axes.text(left + 0.1, -0.15, f"host {host}", ha="left", va="bottom", fontsize=10)
        wide = 2.6 if host else 4.6  # the first agent has the store in it
        style.box(axes, left + 0.3, 0.4, wide, 0.9, facecolor="#EEEEEE", edgecolor=style.GREY)
        style.centred(axes, left + 1.6, 0.85, "agent (torchrun)")
        for local in (0, 1):
            rank = 2 * host + local
            look = palette.ground(palette.colour(rank))
            style.box(axes, left + 0.3 + 2.4 * local, 2.5, 2.1, 0.9, **look)
            style.centred(axes, left + 1.35 + 2.4 * local, 2.95, f"rank {rank}")
            arrow = {"arrowstyle": "-|>", "color": style.GREY}
            start = (left + 1.2 + 0.8 * local, 1.3)
            axes.annotate("", (left + 1.35 + 2.4 * local, 2.5), start, arrowprops=arrow)
    style.box(axes, 3.3, 0.55, 1.3, 0.6, facecolor="white", edgecolor=style.GREY)
    style.centred(axes, 3.95, 0.85, "store")
    axes.plot([5.2, 7.2], [2, 2], color=style.GREY, lw=3)
    style.centred(axes, 6.2, 1.72, "link")
    places = (12.1, 3.4), (10.1, 0.4), (4.9, 0.4), (6.2, 2.38)
    for number, (x, y) in enumerate(places, 1):
        _mark(axes, x, y, number)
    said = (
        "1  a rank     2  an agent (and its ranks)     3  the agent with the store (and its ranks)"
    )
    said += "     4  the link"
    style.centred(axes, 6.2, 4.5, said, fontsize=10, color=palette.WRONG)
    axes.set_xlim(-0.2, 12.6)
    axes.set_ylim(4.9, -0.8)
    axes.axis("off")
    plt.show()


def _mark(axes: Axes, x: float, y: float, number: int) -> None:
    """A number in a circle, where something breaks."""
    look = {"boxstyle": "circle,pad=0.25", "fc": "white", "ec": palette.WRONG, "lw": 1.5}
    style.centred(axes, x, y, f"{number}", color=palette.WRONG, fontweight="bold", bbox=look)


def who_notices(
    found: Mapping[str, tuple[Sequence[tuple[int, float]], float | None]],
    watched: float,
) -> None:
    """For each damage, when each rank noticed, and when all four had all-reduced again.

    Args:
        found: damage to ((rank, seconds) of those that noticed, seconds until all were back).
        watched: seconds after which a run was stopped if the ranks were not back.
    """
    axes = style.axes(1.4 + 0.5 * len(found), "", "seconds after the damage")
    title = "Something breaks. When do the ranks notice, and are they back?"
    axes.set_title(title, loc="left", pad=26)
    widest = max(watched, *(back for _, back in found.values() if back))
    for row, (what, (noticed, back)) in enumerate(found.items()):
        axes.plot([0, widest], [row, row], color="#DDDDDD", linewidth=0.8, zorder=0)
        for rank, seconds in noticed:
            place = row + 0.16 * (rank - 1.5)
            axes.plot(seconds, place, "o", color=palette.colour(rank), markersize=5.5)
        if cut := re.search(r"for (\d+) s", what):
            again = int(cut[1])
            axes.plot([again, again], [row - 0.28, row + 0.28], color="black", linewidth=1.2)
            axes.text(again, row - 0.3, "link is back", ha="center", va="bottom", fontsize=9)
        if back:
            axes.plot(back, row, "*", color="black", markersize=13)
        else:
            said = f"not back when we stopped, after {watched:g} s"
            axes.text(widest, row - 0.12, said, ha="right", va="bottom", fontsize=9)
    for rank in range(4):
        axes.plot([], [], "o", color=palette.colour(rank), label=f"rank {rank} notices")
    axes.plot([], [], "*", color="black", markersize=13, label="all four work again")
    names = [f"{what}\nand its ranks" if "agent" in what else what for what in found]
    axes.set_yticks(range(len(found)), names)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlim(-0.3, widest + 0.5)
    place = {"loc": "lower left", "bbox_to_anchor": (-0.25, 1), "ncols": 5}
    axes.legend(frameon=False, fontsize=9, columnspacing=1, handletextpad=0.2, **place)
    plt.show()


def stops() -> None:
    """What three ranks do when one of them is told to stop: alone, and after they have agreed."""
    title = "Rank 1 is told to stop. Above, it stops alone. Below, all ranks agree first."
    every = style.panels(2, 1, 4.2, title)
    step, message, wait = (palette.ACTIVITY[name] for name in ("forward", "message", "wait"))
    for axes, agree in zip(every, (False, True), strict=True):
        for rank in range(3):
            at = 0.0
            for _ in range(2):
                at = _bar(axes, at, rank, 1.0, "step", step)
                at = _bar(axes, at, rank, 0.55, "g", message)
                at = _bar(axes, at, rank, 0.3, "?", message) if agree else at
            if agree or rank == 1:
                at = _bar(axes, at, rank, 0.9, "save", palette.ACTIVITY["copy"])
                if agree:
                    _bar(axes, at, rank, 0.8, "end", "#FFFFFF")
                else:
                    _bar(axes, at, rank, 3.0, "waits in the barrier of its save", wait)
            else:
                at = _bar(axes, at, rank, 1.0, "step", step)
                _bar(axes, at, rank, 2.9, "waits in the all-reduce", wait)
        style.centred(axes, 2.1, 0.5, "told to stop ▼", fontsize=8.5, color=palette.WRONG)
        axes.set_xlim(0, 7.2)
        axes.set_ylim(2.6, -0.5)
        axes.set_yticks(range(3), [f"rank {rank}" for rank in range(3)])
        axes.set_xticks([])
        axes.spines[["left", "bottom"]].set_visible(False)
    every[1].set_xlabel("time (g: all-reduce of the gradients; ?: all-reduce of one wish)")
    plt.show()


def signal() -> None:
    """Where a signal goes that tells a run to stop, and what comes 30 seconds later."""
    title = "The way of a signal. After 30 seconds, torchrun sends SIGKILL."
    axes = style.axes(2.9, title, "seconds after the signal")
    step, copy, wait = (palette.ACTIVITY[name] for name in ("forward", "copy", "wait"))
    style.box(axes, -1.6, 1.45, 39.4, 2.1, facecolor="none", edgecolor=style.GREY, ls="--", lw=1)
    axes.text(37.6, 3.5, "process group of a rank", ha="right", va="bottom", fontsize=9)
    at = _bar(axes, 1.0, 2, 5.0, "step", step)
    at = _bar(axes, at, 2, 11.0, "save", copy)
    _bar(axes, at, 2, 4.0, "end", "#FFFFFF")
    _bar(axes, 1.0, 3, 20.0, "must ignore it", wait)
    look = {"arrowstyle": "-|>", "color": palette.WRONG, "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    for x, top, bottom in ((0, 0.2, 0.75), (0.3, 1.2, 2), (0.3, 2, 3)):
        axes.annotate("", (x, bottom), (x, top), arrowprops=look)
    words = {"color": palette.WRONG, "fontsize": 9, "va": "center"}
    axes.text(1.0, 0.0, "SIGUSR1, a minute or two before the time is up", **words)
    axes.text(1.0, 1.0, "SIGUSR1, sent on to each rank's process group", **words)
    axes.annotate("", (30, 3.1), (30, 1.25), arrowprops=look)
    axes.text(30, 1.0, "SIGKILL", ha="center", **words)
    axes.text(30.6, 2.3, "ends a rank that\nstill runs", **words)
    names = "scheduler", "torchrun", "rank", "its data loader's\nworkers"
    axes.set_yticks(range(4), names)
    axes.set_xticks([0, 10, 20, 30])
    axes.set_xlim(-1.8, 38)
    axes.set_ylim(3.7, -0.5)
    axes.spines[["left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    plt.show()


def _bar(axes: Axes, at: float, row: float, width: float, word: str, colour: str) -> float:
    """A bar of a timeline with a word on it; returns where it ends."""
    look = palette.ground(colour) if colour != "#FFFFFF" else {"fc": "white", "ec": style.GREY}
    style.box(axes, at, row - 0.32, width - 0.04, 0.64, **look)
    style.centred(axes, at + width / 2 - 0.02, row, word, fontsize=8.5)
    return at + width


def state() -> None:
    """The five parts of a training's state, and which of them each part of a step reads."""
    title = "In our training, one step reads five things. A checkpoint must have all of them."
    axes = style.axes(3.3, title)
    wide, apart = 2.2, 2.5
    middle = {part: apart * number + wide / 2 for number, part in enumerate(PARTS)}
    for part, words in PARTS.items():
        style.box(axes, middle[part] - wide / 2, 0, wide, 1.3, **palette.ground(FORGOT[part]))
        style.centred(axes, middle[part], 0.3, part, fontsize=10, fontweight="bold")
        style.centred(axes, middle[part], 0.85, words, fontsize=8.5)
    for first, last, words in (
        ("place", "place", "equal on all ranks"),
        ("random", "random", "own on each rank"),
        ("model", "schedule", "equal on all ranks"),
    ):
        ends = middle[first] - wide / 2, middle[last] + wide / 2
        axes.plot(ends, [-0.2, -0.2], color=style.GREY, linewidth=1)
        style.centred(axes, sum(ends) / 2, -0.48, words, fontsize=8.5)
    stages = (  # the words; from where to where; what the stage reads, and where its arrows end
        ("take a batch", 0.0, 2.2, {"place": 1.1}),
        ("forward and backward", 2.5, 5.7, {"random": 3.6, "model": 5.1}),
        ("average\nthe gradients", 6.0, 7.8, {}),
        ("update the weights", 8.1, 12.2, {"model": 8.4, "optimizer": 9.1, "schedule": 11.1}),
    )
    arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    for at, (words, left, right, reads) in enumerate(stages):
        style.box(axes, left, 2.4, right - left, 0.9, facecolor="#EEEEEE", edgecolor=style.GREY)
        style.centred(axes, (left + right) / 2, 2.85, words)
        if at:
            look = arrow | {"color": "black"}
            axes.annotate("", (left, 2.85), (left - 0.3, 2.85), arrowprops=look)
        for part, x in reads.items():
            start = middle[part] + max(-0.8, min(0.8, x - middle[part]))
            look = arrow | {"color": FORGOT[part], "lw": 1.6}
            axes.annotate("", (x, 2.4), (start, 1.3), arrowprops=look)
    style.centred(axes, 6.1, 3.65, "step k + 1, from left to right", fontsize=9.5)
    axes.set_xlim(-0.1, 12.3)
    axes.set_ylim(3.9, -0.7)
    axes.axis("off")
    plt.show()


def resumed(whole: Sequence[int], killed: Sequence[int], again: Sequence[int], every: int) -> None:
    """The steps of a run left alone, of a killed run, and of the same run started again.

    Args:
        whole: the steps that the run did that was left alone.
        killed: those of the killed run.
        again: those of the run that resumed it.
        every: a save came after each so many steps.
    """
    axes = style.axes(3.0, "", "step")
    step, lost = palette.ACTIVITY["forward"], "#EE6677"
    repeated = set(killed) & set(again)
    for row, steps in enumerate((whole, killed, again)):
        for at in steps:
            look = palette.ground(lost if row and at in repeated else step)
            hatch = {"hatch": "////"} if row == 2 and at in repeated else {}
            style.box(axes, at - 0.47, row - 0.25, 0.94, 0.5, **look | hatch)
            if at % every == 0:
                axes.plot([at + 0.5] * 2, [row - 0.36, row + 0.36], color="black", linewidth=2.5)
    last, first = killed[-1], again[0]
    style.centred(axes, last + 1.3, 1, "✕", fontsize=15, color=palette.WRONG)
    axes.text(last + 2, 1, "rank 2 kills itself", va="center", color=palette.WRONG, fontsize=9.5)
    arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (first - 0.5, 1.62), (first - 0.5, 1.36), arrowprops=arrow)
    said = f"loads step {first - 1} "
    axes.text(first - 0.9, 2, said, ha="right", va="center", fontsize=9.5)
    handles = [Patch(label="step", **palette.ground(step))]
    handles += [plt.Line2D([], [], color="black", linewidth=2.5, label="save")]
    handles += [Patch(label="lost", **palette.ground(lost))]
    handles += [Patch(label="done again", hatch="////", **palette.ground(lost))]
    place = {"loc": "lower left", "bbox_to_anchor": (0, 0.96)}
    axes.legend(handles=handles, frameon=False, fontsize=9, ncols=4, **place)
    axes.set_title("Three steps are lost, and done again", loc="left", pad=24)
    axes.set_yticks(range(3), ["left alone", "killed", "started again"])
    axes.set_xticks([1, *range(every, whole[-1] + 1, every), whole[-1]])
    axes.set_xlim(0.3, whole[-1] + 0.8)
    axes.set_ylim(2.5, -0.5)
    axes.spines[["left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    plt.show()


def forgetting(rows: Sequence[Mapping]) -> None:
    """Losses of resumed runs: two mistakes that show, and three that don't.

    Args:
        rows: what each run reported: `seed`, `forgot`, and `losses` of steps 21 to 40.
    """
    title = "What a resumed run forgot: two mistakes show, three hide"
    axes = style.axes(3.6, title, AFTER, "loss, in nats (mean of 3 ranks)")
    curves = {(row["seed"], row["forgot"]): row["losses"] for row in rows}
    whole = [curves[seed, "nothing"] for seed in range(3)]
    low, high = ([pick(each) for each in zip(*whole, strict=True)] for pick in (min, max))
    axes.fill_between(RESUMED, low, high, color="#DDDDDD", label="nothing, three seeds")
    axes.plot(RESUMED, whole[0], color="black", linewidth=1.2, label="nothing, seed 0")
    for part in FORGOT:
        look = {"color": FORGOT[part], "linewidth": 1.6 if part in SHOWN else 0.9}
        axes.plot(RESUMED, curves[0, part], label=_named(part), **look)
    for part, seed in itertools.product(SHOWN, (1, 2)):
        axes.plot(RESUMED, curves[seed, part], color=FORGOT[part], linewidth=0.6, alpha=0.45)
    _show_resumed(axes)


def hidden(rows: Sequence[Mapping]) -> None:
    """The three mistakes that hide, as differences from no mistake; `rows` as in `forgetting`."""
    title = "Three mistakes that hide, beside the complete run"
    axes = style.axes(3.6, title, AFTER, "loss minus the complete run's, in nats")
    curves = {(row["seed"], row["forgot"]): row["losses"] for row in rows}
    axes.axhline(0, color="black", linewidth=1.2, label="nothing")
    hide = [part for part in FORGOT if part not in SHOWN]
    for part, seed in itertools.product(hide, range(3)):
        look = {"color": FORGOT[part], "linewidth": 1.6 if seed == 0 else 0.6}
        look |= {"alpha": 1 if seed == 0 else 0.45, "label": _named(part) if seed == 0 else None}
        both = zip(curves[seed, part], curves[seed, "nothing"], strict=True)
        axes.plot(RESUMED, [loss - full for loss, full in both], **look)
    _show_resumed(axes)


def _show_resumed(axes: Axes) -> None:
    """Finish and show curves over the steps of resumed runs."""
    axes.set_xticks(range(20, 41, 5))
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


def _named(part: str) -> str:
    """A part of the state, as a legend calls it."""
    return f"the {part}" if part != "random" else "the random states"


def pieces(count: int, saved: int, wanted: int) -> None:
    """How `saved` ranks share `count` values, and from whom each of `wanted` ranks reads."""
    axes = style.axes(2.6, "Eleven values, saved by four ranks and loaded by three")
    old, new = _cuts(count, saved), _cuts(count, wanted)
    for rank, (start, stop) in enumerate(old):
        style.box(axes, start, 0, stop - start, 0.7, **palette.ground(palette.colour(rank)))
        style.centred(axes, (start + stop) / 2, 0.35, f"rank {rank}")
    for rank, (start, stop) in enumerate(new):
        for source, (begin, end) in enumerate(old):
            first, last = max(start, begin), min(stop, end)
            if first < last:
                look = palette.ground(palette.colour(source))
                style.box(axes, first, 1.9, last - first, 0.7, **look | {"lw": 0.4})
                middle = (first + last) / 2
                arrow = {"arrowstyle": "->", "color": palette.colour(source)}
                axes.annotate("", (middle, 1.87), (middle, 0.74), arrowprops=arrow)
        style.box(axes, start, 1.9, stop - start, 0.7, facecolor="none", edgecolor="black", lw=1.6)
        look = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": "none"}  # on two colours
        style.centred(axes, (start + stop) / 2, 2.25, f"rank {rank}", bbox=look)
    for row, ranks, verb in ((0.35, saved, "wrote"), (2.25, wanted, "read")):
        axes.text(-0.2, row, f"{ranks} ranks {verb}", ha="right", va="center")
    for at in range(count + 1):
        axes.plot([at, at], [2.65, 2.75], color=style.GREY, linewidth=0.8)
        axes.text(at, 3.05, at, ha="center", color=style.GREY, fontsize=8)
    axes.set_xlim(-2.4, count + 0.2)
    axes.set_ylim(3.2, -0.2)
    axes.axis("off")
    plt.show()


def _cuts(count: int, ranks: int) -> list[tuple[int, int]]:
    """Where each rank's share begins and ends."""
    size, more = divmod(count, ranks)
    starts = [rank * size + min(rank, more) for rank in range(ranks + 1)]
    return list(itertools.pairwise(starts))


def save_in_time() -> None:
    """What the ranks write during a save, and which checkpoint counts meanwhile."""
    title = "A save of step 20: whenever it is killed, a whole checkpoint counts"
    axes = style.axes(3.0, title, "time")
    copy, message = palette.ACTIVITY["copy"], palette.ACTIVITY["message"]
    moment = 8.2
    for rank, longer in enumerate((0.0, 0.9)):
        at = _bar(axes, 0.0, rank, 2.6 + longer, "writes its draft", copy)
        at = _bar(axes, at, rank, 1.0, "fsync", copy)
        at = _bar(axes, at, rank, 1.0, "rename", copy)
        if rank == 0:
            at = _bar(axes, at, rank, 0.9, "waits", palette.ACTIVITY["wait"])
        at = _bar(axes, at, rank, 1.0, "gather", message)
        if rank == 0:
            at = _bar(axes, at, rank, 1.7, "manifest", copy)
            at = _bar(axes, at, rank, 1.2, "older", copy)
            done = _bar(axes, at, rank, 2.0, "removes step 10", palette.ACTIVITY["update"])
        else:  # no rank returns before the checkpoint is valid
            _bar(axes, at, rank, done - at, "", palette.ACTIVITY["wait"])
            style.centred(axes, (moment + done) / 2, rank, "waits for rank 0", fontsize=8.5)
    axes.plot([moment, moment], [-0.5, 2.9], color="black", linewidth=1)
    axes.text(moment, -0.55, "the manifest is renamed", ha="center", va="bottom", fontsize=9)
    for left, right, words in ((0, moment, "step 15 counts"), (moment, 11.4, "step 20 counts")):
        style.box(axes, left, 2.15, right - left - 0.04, 0.64, fc="white", ec="black", lw=1.4)
        style.centred(axes, (left + right) / 2, 2.47, words)
    axes.set_yticks([0, 1, 2.47], ["rank 0", "rank 1", "can be loaded"])
    axes.set_xticks([])
    axes.set_xlim(0, 11.5)
    axes.set_ylim(2.95, -1.1)
    axes.spines[["left", "bottom"]].set_visible(False)
    plt.show()


def folder() -> None:
    """The files of a folder after a save of step 20, and after a kill between its manifests."""
    every = style.panels(1, 2, 3.4, "The manifests decide which files count", bare=True)
    after = {"manifest.json": 20, "manifest_older.json": 15}
    between = {"manifest.json": 20, "manifest_older.json": 10}
    states = ("after the save of step 20", after), ("killed between the two manifests", between)
    for axes, (name, manifests) in zip(every, states, strict=True):
        rows = {20: 0.0, 15: 1.3, 10: 2.6}
        for step, top in rows.items():
            gone = step not in manifests.values() and step == 10
            counts = step in manifests.values()
            for rank in (0, 1):
                left = 5.3 + 2.5 * rank
                look = palette.ground(palette.colour(rank)) if counts else {"fc": "white"}
                look |= {} if counts else {"ec": style.GREY, "ls": ":" if gone else "--"}
                style.box(axes, left, top, 2.3, 0.9, **look)
                style.centred(axes, left + 1.15, top + 0.45, f"step {step}\nrank {rank}")
                if gone:
                    ends = [left, left + 2.3], [top, top + 0.9]
                    axes.plot(*ends, color=palette.WRONG, linewidth=1.5)
            if not counts:
                said = "removed" if gone else "whole, but in no manifest"
                axes.text(7.7, top + 1.15, said, ha="center", va="center", fontsize=8.5)
        for top, (file, step) in zip((0.0, 1.3), manifests.items(), strict=True):
            style.box(axes, 0, top, 3.7, 0.9, facecolor="#EEEEEE", edgecolor="black", lw=1.2)
            style.centred(axes, 1.85, top + 0.45, file, fontsize=8.5)
            arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 2}
            place = (5.3, rows[step] + 0.45)
            axes.annotate("", place, (3.7, top + 0.45), arrowprops=arrow)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlim(-0.1, 10.3)
        axes.set_ylim(4.0, -0.3)
    plt.show()


def kills(ways: Mapping[str, Sequence[Mapping]]) -> None:
    """What can be loaded after each kill, over the moment of the kill.

    Args:
        ways: for each way to save, the kills of it; `ms` and `lost` of each.
    """
    title = "Each mark is a save, killed before it was over. What can be loaded?"
    every = style.panels(len(ways), 1, 0.4 + 1.75 * len(ways), title)  # a time axis for each way
    for axes, (name, reports) in zip(every, ways.items(), strict=True):
        for row, (lost, (marker, colour, _)) in enumerate(LEFT.items()):
            hits = [report["ms"] for report in reports if report["lost"] == lost]
            axes.plot(hits, [row] * len(hits), marker, color=colour, alpha=0.6)
        axes.set_yticks(range(3), [name for *_, name in LEFT.values()])
        axes.set_ylim(-0.5, 2.5)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_ylabel("can be loaded")
        axes.set_xlim(0, 1.03 * max(report["ms"] for report in reports))
    every[-1].set_xlabel("the moment of the kill: ms after the save began")
    plt.show()


def young(
    save: float,
    restart: float,
    between: float,
    best: float,
    measured: Mapping[float, float] | None = None,
) -> None:
    """Time lost over the interval between saves: three parts, their sum, and a simulation.

    Args:
        save: seconds that a save costs.
        restart: seconds that a restart takes.
        between: seconds between two failures.
        best: Young's interval.
        measured: interval to seconds lost, if it was simulated.
    """
    title = "Saves cost less and less, lost work costs more and more: the sum has a lowest point"
    if measured:
        title = "Simulated failures cost a little more than the sum says"
    what = "seconds lost\nper second of training"
    axes = style.axes(3.4, title, "minutes between saves (log)", what)
    fine = [best * 2 ** (power / 20) for power in range(-60, 51)]
    minutes = [interval / 60 for interval in fine]
    saves, work = [save / t for t in fine], [t / 2 / between for t in fine]
    total = [sum(each) + restart / between for each in zip(saves, work, strict=True)]
    lowest = save / best + (best / 2 + restart) / between
    axes.semilogx(minutes, total, color="black", linewidth=2.2)
    axes.plot(minutes, saves, ":", color="#AA3377", linewidth=2)
    axes.plot(minutes, work, "--", color="#4477AA", linewidth=2)
    axes.plot(minutes, [restart / between] * len(fine), color=style.GREY, linewidth=1)
    axes.plot([best / 60] * 2, [0, lowest], color="#228833", linewidth=1.2)
    words = {"va": "center", "fontsize": 9.5}
    axes.text(minutes[4], total[4] + 0.03, "the sum of all three", color="black", **words)
    axes.text(minutes[0], saves[0] - 0.13, "saves", color="#AA3377", **words)
    axes.text(minutes[-1], work[-1] - 0.12, "lost work", color="#4477AA", ha="right", **words)
    axes.text(minutes[0], restart / between + 0.02, "restarts", color=style.GREY, **words)
    if measured:
        simulated = list(measured.values())
        axes.plot([t / 60 for t in measured], simulated, "o", color="#EE6677", label="simulated")
        axes.legend(frameon=False, fontsize=9.5, loc="upper center")
        axes.text(best / 60 * 1.03, 0.12, "Young's interval", color="#228833", **words)
    else:
        axes.plot(best / 60, lowest, "o", color="#228833", markersize=8)
        said = f"Young's interval: {best / 60:.0f} minutes,\n{lowest:.2f} seconds lost"
        look = {"color": "#228833", "ha": "center", "va": "bottom", "fontsize": 9.5}
        axes.text(best / 60, lowest + 0.04, said, **look)
    axes.set_ylim(0, 0.53)
    ticks = (3, 5, 10, 20, 50, 100)
    axes.set_xticks(ticks, list(map(str, ticks)))
    axes.minorticks_off()
    plt.show()
