"""The pictures that notebook 16 alone draws."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from course_utils import palette, show
from nbtorchrun.runs import Run

GREY = show.style.GREY
KEPT = ("#EE8866", "#77AADD", "#BBCC33", "#DDDDDD")  # of the parts that a layer keeps


def traffic(mesh: Any, run: Run) -> None:
    """Eight ranks; the lines between them are as thick as what travels is large."""
    flows: dict[tuple[int, ...], float] = {}
    for told in run.reports:
        flows |= {tuple(ranks): size for ranks, size in told.get("groups", [])}
    show.cube(
        mesh,
        "What each rank sends along each axis in one step (line width to scale)",
        lambda axis, groups: f"{axis}: {max(flows[each] for each in groups) / 1e3:.0f} kB at most",
        lambda group: 11 * flows[group] / max(flows.values()),
    )
    plt.show()


def memory(held: Mapping[str, float], layers: int) -> None:
    """GB on one GPU over one micro-batch: activations rise layer by layer, and fall again."""
    title = "One GPU during one micro-batch: what it holds, and when"
    axes = show.style.axes(3.6, title, "layers passed: forward, then backward", "GB")
    per = held["activations"] / (layers + 2)  # the last two stand for the head
    steps = [*range(layers), layers + 2, layers + 2, *range(layers, -1, -1)]
    x = list(range(len(steps)))
    floor = [0.0] * len(steps)
    colours = palette.MEMORY | {"weights": palette.MEMORY["parameters"]}
    for kind in ("weights", "gradients", "optimizer"):
        top = [low + held[kind] for low in floor]
        label = f"{kind}: {held[kind]:.1f} GB"
        axes.fill_between(x, floor, top, color=colours[kind], lw=0, label=label)
        floor = top
    top = [low + per * step for low, step in zip(floor, steps, strict=True)]
    label = f"activations: {held['activations']:.1f} GB at most"
    axes.fill_between(x, floor, top, color=palette.MEMORY["activations"], lw=0, label=label)
    axes.axhline(80, color=show.style.GREY, ls="--", lw=1)
    axes.text(1, 81, "80 GB", color=show.style.GREY)
    axes.axhline(76, color=show.style.GREY, ls=":", lw=1)
    axes.text(1, 75, "76 GB: 4 GB stay free", color=show.style.GREY, va="top")
    middle = layers + 0.5
    words = f"the peak: output layer and softmax add {2 * per:.1f} GB"
    look = {"ha": "center", "va": "bottom", "fontsize": 9, "arrowprops": {"arrowstyle": "->"}}
    axes.annotate(words, (middle, top[layers + 1]), (middle, 65), **look)
    for at, words in ((middle / 2, "forward"), (1.5 * middle, "backward")):
        axes.text(at, 55, words, ha="center", color=show.style.GREY)
    axes.set(xlim=(0, len(steps) - 1), ylim=(0, 88))
    axes.set_xticks([0, layers // 2, layers, layers + layers // 2, 2 * layers])
    axes.set_xticklabels([0, layers // 2, layers, layers // 2, 0])
    handles, labels = axes.get_legend_handles_labels()
    look = {"frameon": False, "loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    axes.legend(handles[::-1], labels[::-1], **look)  # in the order of the stack
    plt.show()


def rings(cuts: Sequence[Any], node: int) -> None:
    """Cuts of two machines, and the rings of one group of dp x cp: how much a card carries."""
    title = f"Two machines of {node} GPUs: the rings that carry the gradients"
    panels = show.style.panels(1, len(cuts), 4.4, title, bare=True)
    whole = 9  # points for all that one GPU sends
    for axes, cut in zip(panels, cuts, strict=True):
        # Ranks count tp, cp, pp, dp. In its machine, these share their gradients with rank 0:
        group = [n for n in range(node) if n % cut.tp == n // (cut.tp * cut.cp) % cut.pp == 0]
        g, middle = len(group), (node - 1) / 2
        out = 0.11 if g > 1 else 0.21  # from a card's middle: a ring's way out and its way back
        for card in range(node):
            kind = "others" if card not in group else "group" if card else "first"
            for x in (card - out, card + out):
                axes.plot([x, x], [-1.3, 1.3], color=RINGS[kind], lw=whole / g, zorder=1)
        # In the machine above it goes from its card through all GPUs of the group, and back:
        ring = [(-out, 1.3), *([(-out, 1.92), (0, 2.6)] if g > 1 else [(-out, 2.6)])]
        turn, high = np.linspace(np.pi, 0, 20), 0.35 + 0.2 * cut.tp
        for left, right in pairwise(group):
            x, y = (left + right + (right - left) * np.cos(turn)) / 2, 2.6 + high * np.sin(turn)
            ring += zip(x, y, strict=True)
        ring += [(group[-1], 1.92), (out, 1.92)] if g > 1 else [(out, 2.6)]
        x, y = np.array([*ring, (out, 1.3)]).T
        for up in (1, -1):  # the machine below is the same upside down
            axes.plot(x, up * y, color=RINGS["first"], lw=whole / g, zorder=2)
            for gpu in range(node):
                look = {"color": "#444444" if gpu in group else "#cccccc", "mec": "white"}
                axes.plot(gpu, 2.6 * up, "o", ms=12, zorder=3, **look)
                axes.plot(gpu, 1.3 * up, "s", ms=11, zorder=3, **look)
            corner = -0.7, 0.85 if up > 0 else -3.6
            show.style.box(axes, *corner, node + 0.4, 2.75, fc="none", ec=GREY)
        axis, size = ("cp", cut.cp) if cut.cp > 1 else ("tp", cut.tp)
        for start in range(0, node, size):
            axes.plot([start - 0.35, start + size - 0.65], [3.9, 3.9], color=GREY, lw=2)
        words = "group" if size == node else "groups"
        words = f"{words} of {axis} = {size}"
        show.style.centred(axes, middle, 4.3, words, color=GREY)
        many, part = ("rings", f"1/{g} of what") if g > 1 else ("ring", "all that")
        axes.set_title(f"g = {g}: {g} {many}", fontsize=12)
        words = f"each card carries {part} a GPU sends"
        show.style.centred(axes, middle, -4.1, words, fontsize=10)
        axes.set(xlim=(-0.8, node - 0.2), ylim=(-4.5, 4.7))
    for y in (1, -1):
        for place, words in ((2.6, "GPUs"), (1.3, "cards")):
            panels[0].text(-0.9, y * place, words, ha="right", va="center", color=GREY, fontsize=9)
    names = ["one ring, whole", "the same group's other rings", "other groups' rings"]
    pairs = zip(RINGS.values(), names, strict=True)
    lines = [plt.Line2D([], [], color=colour, lw=4, label=name) for colour, name in pairs]
    look = {"ncols": 3, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    panels[0].figure.legend(handles=lines, **look)
    plt.show()


RINGS = {"first": "#332288", "group": "#44AA99", "others": "#DDDDDD"}


def step(compute: float, tensor: float, data: float, shown: float, microbatches: int) -> None:
    """One step by hand: what computes, what waits for tp's messages, and what dp's hide behind."""
    forward, backward = palette.ACTIVITY["forward"], palette.ACTIVITY["backward"]
    tp, dp = show.meshes.AXIS["tp"], palette.ACTIVITY["message"]
    title = "One step of the plan made by hand: what hides, and what doesn't"
    axes = show.style.axes(2.8, title, "seconds", "")
    compute, tensor, now = compute / microbatches, tensor / microbatches, shown
    blocks = [(2, 0.0, data / 2, dp)]  # ZeRO-1 gathers the weights for the first forward pass
    for _ in range(microbatches):
        # Of tp's messages forward has two all-reduces per layer, backward two and two gathers.
        for part, share, colour in ((1 / 3, 2 / 5, forward), (2 / 3, 3 / 5, backward)):
            blocks.append((0, now, part * compute, colour))
            now += part * compute
            blocks.append((1, now, share * tensor, tp))
            now += share * tensor
    end_of_last = now - 3 / 5 * tensor
    blocks.append((2, end_of_last - data / 2, data / 2, dp))  # gradients, as backward makes them
    for row, start, width, colour in blocks:
        axes.add_patch(plt.Rectangle((start, row - 0.35), width, 0.7, facecolor=colour, lw=0))
    look = {"va": "center", "fontsize": 9}
    words = f"weights: {shown:.2f} s longer than the first F,\nso the GPU waits at the start"
    axes.text(data / 2 + 0.08, 2, words, **look)
    words = "gradients: hidden\nbehind the last B"
    axes.text(end_of_last - data / 2 - 0.08, 2, words, ha="right", **look)
    axes.set_yticks(range(3), ["computing", "tensor parallel", "data parallel"])
    axes.set(xlim=(0, now), ylim=(2.6, -0.6))
    boxes = [plt.Rectangle((0, 0), 1, 1, color=each) for each in (forward, backward, tp, dp)]
    words = ["F", "B", "tp: the GPU waits", "dp: weights, then gradients"]
    look = {"ncols": 4, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    axes.figure.legend(boxes, words, **look)
    plt.show()


def parts(planner: ModuleType, model: Any, plans: Mapping[str, Any], batch: int = 512) -> None:
    """What one step of each plan consists of; beneath it, the messages that hide. Only pp = 1."""
    title = "One step of three plans: what the GPU spends its time on"
    axes = show.style.axes(3.9, title, "seconds")
    machine = planner.costs.H100
    looks = {
        "computing": palette.ACTIVITY["forward"],
        "second forward pass": palette.ACTIVITY["backward"],
        "waiting for tp": show.meshes.AXIS["tp"],
        "waiting for cp": "#AA4499",
        "waiting for dp": palette.ACTIVITY["message"],
    }
    for row, plan in enumerate(plans.values()):
        cut = plan.cut
        (stage,), rounds = planner.stages_of(model, cut.pp), batch // (cut.dp * cut.rows)
        once = cut._replace(recompute=False)
        once, whole = (planner.compute_seconds(model, c, stage, machine) for c in (once, cut))
        tp, cp, dp = (
            planner.message_seconds({axis: plan.bytes[axis]}, cut, machine)
            for axis in ("tp", "cp", "dp")
        )
        shown = max(0.0, plan.seconds - rounds * whole - tp - cp)
        widths, left = (rounds * once, rounds * (whole - once), tp, cp, shown), 0.0
        for width, colour in zip(widths, looks.values(), strict=True):
            show.style.box(axes, left, row - 0.34, width, 0.46, facecolor=colour, lw=0)
            if width > 0.5:
                dark = colour != palette.ACTIVITY["forward"]
                look = {"color": "white" if dark else "black", "fontsize": 9}
                show.style.centred(axes, left + width / 2, row - 0.11, f"{width:.1f}", **look)
            left += width
        axes.text(left + 0.08, row - 0.11, f"{left:.2f} s", va="center", fontsize=10)
        look = {"facecolor": "none", "edgecolor": "#8A7A1F", "hatch": "////", "lw": 1}
        show.style.box(axes, 0, row + 0.17, dp - shown, 0.16, **look)
        words = f"{dp - shown:.1f} s of dp's messages hide"
        axes.text(dp - shown + 0.08, row + 0.25, words, va="center", fontsize=9, color=GREY)
    axes.set_yticks(range(len(plans)), plans)
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 9.2), ylim=(len(plans) - 0.5, -0.55))
    boxes = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in looks.values()]
    boxes.append(plt.Rectangle((0, 0), 1, 1, fc="none", ec="#8A7A1F", hatch="////"))
    look = {"ncols": 3, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    axes.figure.legend(boxes, [*looks, "dp: hides behind computing"], **look)
    plt.show()


def kept(model: Any, told: Mapping[str, Any], tp: int = 8) -> None:
    """What one layer keeps until backward: as planned for Megatron's, and counted in PyTorch."""
    one = 2 * model.positions * model.width / tp  # bytes of one norm's input on one of tp ranks
    hidden = 2 * model.positions * model.hidden / tp
    planned = {"outputs of the norms": 2 * one, "hidden width": 3 * hidden}
    planned["inside the norms"] = 2 * one  # their inputs
    counted = dict.fromkeys(planned, 0.0)
    for name, size in told["kept"].items():
        if name.startswith("float32") and size >= one:
            counted["inside the norms"] += size
        elif f"{model.positions}, {model.width})" in name:
            counted["outputs of the norms"] += size
        elif str(model.hidden // tp) in name:
            counted["hidden width"] += size
    rest = "attention"
    planned[rest] = told["planned"] - sum(planned.values())
    counted[rest] = sum(told["kept"].values()) - sum(counted.values())
    title = "What one layer keeps until backward, on one of 8 tp ranks"
    axes = show.style.axes(2.9, title, "MB")
    for row, sizes in enumerate((planned, counted)):
        left = 0.0
        for size, colour in zip(sizes.values(), KEPT, strict=True):
            show.style.box(axes, left, row - 0.32, size / 1e6, 0.64, facecolor=colour, lw=0)
            show.style.centred(axes, left + size / 2e6, row, f"{size / 1e6:.0f}", fontsize=9)
            left += size / 1e6
        axes.text(left + 8, row, f"{left:.0f} MB", va="center")
    axes.set_yticks([0, 1], ["planned:\nMegatron's layer", "counted:\nPyTorch's layer"])
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 770), ylim=(1.5, -0.5))
    boxes = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in KEPT]
    look = {"ncols": 4, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    axes.figure.legend(boxes, planned, **look)
    plt.show()


def front(
    every: Sequence[Any],
    fits: Sequence[Any],
    room: float = 76,
    alone: Any = None,
    hand: Any = None,
    **limits: Any,
) -> None:
    """Memory and time of the near cuts, with the best for each size of tp.

    With `limits`, which the axes of the slider keep, all cuts stand beside them.
    """
    fastest = fits[0].seconds if fits else every[0].seconds if every else 1.0
    right, top = 1.15 * room, 1.5 * fastest
    if limits:
        title = f"{len(every):,} ways to cut: the memory and time of each"
        whole, near = show.style.panels(1, 2, 4.2, title)
    else:
        seen = sum(each.memory < right and each.seconds < top for each in every)
        title = f"The cuts near the best, {seen} of {len(every):,}: the memory and time of each"
        whole, near = None, show.style.axes(4.2, title)
    best, on_front = float("inf"), []
    for each in sorted(every, key=lambda each: (each.memory, each.seconds)):
        if each.seconds < best:
            best = each.seconds
            on_front.append(each)
    points = np.array([(each.memory, each.seconds) for each in every]).reshape(-1, 2)
    inside = points[(points[:, 0] < right) & (points[:, 1] < top)]
    shown = ((whole, points, 5), (near, inside, 14)) if limits else ((near, inside, 14),)
    for axes, dots, size in shown:
        axes.scatter(*dots.T, s=size, color="#bbbbbb", lw=0)  # lists take ten times as long
        x, y = [each.memory for each in on_front], [each.seconds for each in on_front]
        axes.step(
            x, y, where="post", color="#444444", lw=1.5, label="shortest time for this memory"
        )
        axes.axvline(room, color=show.style.GREY, ls="--", lw=1)
        axes.set_xlabel("memory of the fullest GPU (GB)")
        axes.set_ylabel("time of a step (s)")
    near.axhspan(fastest, 1.05 * fastest, color="#FFF3C4", lw=0, label="within 5 % of the best")
    for number, tp in enumerate((1, 2, 4, 8)):
        for each in [each for each in fits if each.cut.tp == tp][:1]:
            look = {"marker": "osD^"[number], "color": LINES[number], "mec": "white", "ms": 9}
            label = f"best with tp = {tp}: {each.seconds:.1f} s"
            near.plot(each.memory, each.seconds, ls="", label=label, **look)
    piped = next((each for each in fits if each.cut.zero != 3), None) if alone else None
    named = {"FSDP alone": (alone, "*", (0, -0.045)), "made by hand": (hand, "X", (0, 0.03))}
    named |= {"first without ZeRO-3": (piped, "P", (0, 0.045))}
    for words, (each, marker, (aside, up)) in named.items():
        if each:
            look = {"color": "black", "mec": "white", "ms": 13, "zorder": 6}
            near.plot(each.memory, each.seconds, marker, **look)
            box = {"boxstyle": "square,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
            look = {"ha": "center", "va": "center", "fontsize": 9, "bbox": box, "zorder": 6}
            words = f"{words}: {each.seconds:.1f} s"
            near.text(each.memory + aside, each.seconds + up * fastest, words, **look)
    near.set(xlim=(0, right), ylim=(0.96 * fastest, top))
    near.text(room + 0.8, 0.97 * fastest, f"{room:g} GB", color=GREY, fontsize=9)
    look = {"ncols": 3, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    near.figure.legend(*near.get_legend_handles_labels(), **look)
    if whole:
        whole.tick_params(axis="x", labelsize=9)
        whole.set(xscale="log", yscale="log", **limits)
        whole.set_title("all cuts (log scales)", loc="left", fontsize=10)
        for axis in (whole.xaxis, whole.yaxis):  # 8 and 50, not 8 x 10^0 and 5 x 10^1
            axis.set_major_locator(LogLocator(subs=(1,)))
            axis.set_major_formatter("{x:,g}")
            axis.set_minor_formatter(NullFormatter())
            axis.set_minor_locator(NullLocator())  # a hundred minor ticks take a third of the time
        whole.text(room * 1.1, 0.9 * whole.get_ylim()[1], f"{room:g} GB", va="top", color=GREY)
        near.set_title("the near ones (linear scales)", loc="left", fontsize=10)
        # Axes that stay: finding room for their labels would take a quarter of a step
        near.figure.set_layout_engine("none")
        whole.set_position((0.1, 0.29, 0.38, 0.54))
        near.set_position((0.59, 0.29, 0.4, 0.54))
    plt.show()


LINES = ("#AA4499", "#44AA99", "#999933", "#332288")  # of sizes of tp; no rank has these colours


def front_of(
    planner: ModuleType,
    shapes: ModuleType,
    gpus: int = 512,
    link: float = 400,
    batch: int = 512,
    parameters: float = 70e9,
) -> None:
    """The same picture for other numbers, on axes that stay.

    Of all cuts, those with one sequence per micro-batch, and with ZeRO where ranks can share.
    """
    model, machine = shapes.Model.of_size(parameters), replace(planner.costs.H100, link=link)
    # All cuts take five times as long, and the best is hardly ever another.
    ways = planner.cuts(model, gpus, batch, machine.node)
    ways = [cut for cut in ways if cut.rows == 1 and (cut.zero or cut.dp * cut.cp == 1)]
    every = [planner.price(model, cut, batch, machine) for cut in ways]
    every.sort(key=lambda each: (round(each.seconds, 9), each.memory))
    fits = planner.fitting(every, 80)
    if fits:
        at = fits[0]
        print(f"{at.cut}: {at.memory:.0f} GB, bubble {at.bubble:.0%}, {at.seconds:.2f} s")
    else:
        print("no cut fits into 80 GB")
    front(every, fits, xlim=(0.5, 8000), ylim=(0.4, 4000))


def replayed(run: Run, cuts: Sequence[Any], planned: Sequence[float]) -> None:
    """One step of the first cut and one of the last, as they happened, and their planned end."""
    looks = {"F": palette.ACTIVITY["forward"], "B": palette.ACTIVITY["backward"]}
    looks |= {"tp": show.meshes.AXIS["tp"], "dp": palette.ACTIVITY["message"]}
    title = "When things happen: the same model, cut in two ways"
    panels = show.style.panels(2, 1, 4.8, title, sharex=True)
    shown = ((0, 2), (2, 8))  # the cut, and its step: three steps of each of three cuts
    for axes, (number, last) in zip(panels, shown, strict=True):
        steps = [_one_step(run, rank, last) for rank in range(4)]
        begin = min(blocks[0]["start"] for blocks in steps)
        for rank, blocks in enumerate(steps):
            for block in blocks:
                start, width = block["start"] - begin, block["end"] - block["start"]
                look = {"facecolor": looks[block["name"]], "edgecolor": "w"}
                show.style.box(axes, start, rank - 0.4, width, 0.8, **look)
        axes.axvline(planned[number], color="black", ls=":")
        axes.set_title(cuts[number], loc="left", fontsize=10)
        show.style.rank_ticks(axes, range(4))
        axes.autoscale(axis="x")
        axes.set(xlim=(0, None), ylim=(3.5, -0.5))
    panels[-1].set_xlabel("seconds")
    boxes = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in looks.values()]
    line = plt.Line2D([], [], color="black", ls=":")
    words = ["F", "B", "tp: all-reduces", "dp: gradients", "planned end"]
    look = {"ncols": 5, "frameon": False, "loc": "outside lower center", "fontsize": 9}
    panels[0].figure.legend([*boxes, line], words, **look)
    plt.show()


def _one_step(run: Run, rank: int, number: int) -> list[dict]:
    """A rank's blocks in step `number` of the whole run; its last block is the dp message."""
    own = [block for block in run.timeline() if block["rank"] == rank]
    ends = [place + 1 for place, block in enumerate(own) if block["name"] == "dp"]
    return own[ends[number - 1] : ends[number]]
