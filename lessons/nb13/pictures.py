"""The pictures that notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.show import style
from nbtorchrun import palette

WAIT = {"facecolor": palette.ACTIVITY["wait"], "edgecolor": "#888888", "hatch": "///"}
PART = {"input": "copy", "communication": "message"}  # the others are called as their activity
BLACK = {"facecolor": "none", "edgecolor": "#000000", "linewidth": 2.2}
FRAME = {"facecolor": "none", "edgecolor": palette.WRONG, "linewidth": 1.4}
EXPOSED = FRAME | {"linewidth": 0.8, "hatch": "xxx"}
MESSAGE = {
    "facecolor": palette.ACTIVITY["message"],
    "edgecolor": palette.outline(palette.ACTIVITY["message"]),
    "linewidth": 0.7,
}
Spans = Sequence[tuple[float, float]]  # start and end in microseconds


def _colour(part: str) -> str:
    return palette.ACTIVITY[PART.get(part, part)]


def ring(counts: Sequence[int]) -> None:
    """The messages of gloo's all-reduce on each link of its ring: sent, expected, or both.

    It follows gloo's source (allreduce.cc), for tensors of at most two values per rank.

    Args:
        counts: how many values each rank brings.
    """
    ranks = len(counts)
    title = "Each rank counts its messages from its own tensor"
    axes = style.axes(2.5, title, "messages on this link, in order")
    most, names = 0, []
    for row, sender in enumerate((1, 2, 0)):
        receiver = (sender - 1) % ranks
        sent = _pieces(sender, counts[sender], ranks)
        expected = _pieces(receiver, counts[receiver], ranks, ahead=1)
        most = max(most, sent, expected)
        names.append(f"rank {sender} to rank {receiver}")
        for number in range(max(sent, expected)):
            look, words = palette.ground(palette.ACTIVITY["message"]), "arrives"
            if number >= sent:
                look, words = FRAME | {"linestyle": "--"}, "never sent"
            elif number >= expected:
                look, words = WAIT, "not taken"
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            bbox = ground if look is WAIT else None
            style.box(axes, number + 0.53, row + 0.14, 0.94, 0.72, **look)
            style.centred(axes, number + 1, row + 0.5, words, bbox=bbox)
        said = (
            f"rank {receiver if sent < expected else sender} waits" if sent != expected else "done"
        )
        weight = "normal" if said == "done" else "bold"
        axes.text(
            max(sent, expected) + 0.6, row + 0.5, said, va="center", fontsize=9.5, weight=weight
        )
    axes.spines[:].set_visible(False)
    axes.set(xlim=(0.5, most + 1.5), ylim=(len(names), 0))
    axes.set_xticks(range(1, most + 1))
    axes.set_yticks([row + 0.5 for row in range(len(names))], names)
    axes.tick_params(length=0)
    plt.show()


def _pieces(rank: int, count: int, ranks: int, ahead: int = 0) -> int:
    """How many messages a rank sends, or, one ahead, receives: first to reduce, then to gather."""
    slots = [2 * (rank + half + ahead) + i for half in (1, 0) for i in range(2 * ranks - 2)]
    return sum(slot % (2 * ranks) < count for slot in slots)


def histories(recorded: Mapping[str, Sequence[Mapping[int, Mapping]]], last: int = 5) -> None:
    """The last collectives of each rank side by side; the first difference is framed.

    Args:
        recorded: of each fault, what each rank has called, by number.
        last: how many of the numbers are drawn.
    """
    title = "The flight records side by side: where do the ranks differ first?"
    every = style.panels(len(recorded), 1, 4.6, title)
    for axes, (fault, ranks) in zip(every, recorded.items(), strict=True):
        end = 1 + max(map(max, ranks))
        numbers = range(end - last, end)
        for rank, calls in enumerate(ranks):
            for column, number in enumerate(numbers):
                _call(axes, column, rank, calls.get(number))
        kinds = [{str(_kind(calls.get(number))) for calls in ranks} for number in numbers]
        differs = next(column for column, kind in enumerate(kinds) if len(kind) > 1)
        style.box(axes, differs + 0.01, 0.02, 0.98, len(ranks) - 0.04, **FRAME)
        axes.spines[:].set_visible(False)
        axes.set(xlim=(0, last), ylim=(len(ranks), 0))
        axes.set_xticks([column + 0.5 for column in range(last)], list(map(str, numbers)))
        axes.set_yticks([rank + 0.5 for rank in range(len(ranks))], ["rank 0", "rank 1", "rank 2"])
        axes.tick_params(length=0)
        said = _odd_one(numbers[differs], [calls.get(numbers[differs]) for calls in ranks])
        axes.set_title(f"{fault}: {said}", loc="left", fontsize=10)
    every[-1].set_xlabel("number of the collective")
    tint = palette.ground(palette.ACTIVITY["message"])["facecolor"]
    _legend(every[-1], {"done": tint}, waits="called, not done", frame={"first difference": FRAME})
    plt.show()


def _odd_one(number: int, called: Sequence[Mapping | None]) -> str:
    """How the one rank that differs from all others differs, in words."""
    kinds = [str(_kind(call)) for call in called]
    rank = next(rank for rank, kind in enumerate(kinds) if kinds.count(kind) == 1)
    odd, usual = called[rank], called[rank - 1]
    if odd is None:
        return f"rank {rank} never makes call {number}"
    if odd["what"] != usual["what"]:
        return f"rank {rank}'s call {number} is a {odd['what']}, the others' an {usual['what']}"
    mine, theirs = ("x".join(map(str, call["sizes"][0])) for call in (odd, usual))
    return f"rank {rank} brings {mine} values to call {number}, the others {theirs}"


def _kind(call: Mapping | None) -> tuple | None:
    return call and (call["what"], call["sizes"])


def _call(axes: Axes, column: int, rank: int, call: Mapping | None) -> None:
    """One call of a history."""
    place = (column + 0.03, rank + 0.08, 0.94, 0.84)
    if call is None:
        style.centred(axes, column + 0.5, rank + 0.5, "never called", fontsize=8, color=style.GREY)
        return
    look = palette.ground(palette.ACTIVITY["message"]) if call["done"] else WAIT
    style.box(axes, *place, **look)
    size = "".join(f" {size}" for size in call["sizes"])
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1} if not call["done"] else None
    words = f"{call['what']}{size}"
    style.centred(axes, column + 0.5, rank + 0.5, words, fontsize=8, bbox=ground)


def whom_to_blame(marks: Sequence[Mapping], enter: Any, steps: int = 3) -> None:
    """A late rank as a profiler shows it, and with the waiting in grey.

    Args:
        marks: of the run, named `compute`, `held up` and `all-reduce`.
        enter: when each rank entered each all-reduce, in seconds: (ranks, collectives).
        steps: how many of them are drawn, to the end of the last one's all-reduces.
    """
    messages = [m for m in marks if m["name"] == "all-reduce"]
    ends = [[m["end"] for m in messages if m["rank"] == rank] for rank in range(len(enter))]
    until = max(own[steps - 1] for own in ends) + 0.001
    looks = {"compute": "forward", "held up": "copy", "all-reduce": "message"}
    last = enter.max(axis=0)  # when the last rank came to each all-reduce
    above, below = style.panels(2, 1, 4.2, "Rank 1 is late. Whom do you blame?", sharex=True)
    for axes, split in ((above, False), (below, True)):
        seen = dict.fromkeys(range(len(enter)), 0)
        for mark in (m for m in marks if m["end"] <= until):
            rank, name = mark["rank"], mark["name"]
            start, end = 1e3 * mark["start"], 1e3 * mark["end"]
            if name == "all-reduce" and split:
                arrived = min(max(start, 1e3 * last[seen[rank]]), end)
                axes.broken_barh([(start, arrived - start)], (rank - 0.35, 0.7), **WAIT, lw=0.4)
                start = arrived
            seen[rank] += name == "all-reduce"
            colour = palette.ACTIVITY[looks[name]]
            look = {"facecolor": colour, "edgecolor": palette.outline(colour), "lw": 0.4}
            axes.broken_barh([(start, max(end - start, 3))], (rank - 0.35, 0.7), **look)
        style.rank_ticks(axes, range(len(enter)))
        axes.set_xlim(0, 1e3 * until)
    above.set_title(
        "as a profiler shows it: ranks 0 and 2 have slow all-reduces", loc="left", size=10
    )
    below.set_title("their waiting in grey: they wait for rank 1", loc="left", size=10)
    below.set_xlabel("time in milliseconds")
    colours = {name: palette.ACTIVITY[activity] for name, activity in looks.items()}
    _legend(below, colours, waits="waits for the last rank")
    plt.show()


def _legend(
    axes: Axes, colours: Mapping[str, str], waits: str = "", frame: Mapping[str, Mapping] = {}
) -> None:
    """What the colours mean, below the figure."""
    boxes = [
        plt.Rectangle((0, 0), 1, 1, facecolor=colour, edgecolor=palette.outline(colour), lw=0.5)
        for colour in colours.values()
    ]
    names = list(colours)
    if waits:
        boxes, names = [*boxes, plt.Rectangle((0, 0), 1, 1, **WAIT, lw=0.5)], [*names, waits]
    for name, look in frame.items():
        boxes, names = [*boxes, plt.Rectangle((0, 0), 1, 1, **look)], [*names, name]
    axes.figure.legend(
        boxes, names, ncols=len(names), frameon=False, loc="outside lower center", fontsize=8.5
    )


def queue(
    naive: Mapping[str, float], right: Mapping[str, float], kernels: Mapping[str, float]
) -> None:
    """What Python's timers see of a step, above what the device does in it.

    Args:
        naive: milliseconds of each timer without `finish`, in the order of a step.
        right: the same with `finish`.
        kernels: milliseconds that the device needs for the kernels of each part.
    """
    every = style.panels(2, 1, 4.2, "What the timers see, and what the device does", sharex=True)
    sliver, gap = 1.3, 2.2  # milliseconds that are drawn, so that one sees them
    said = ("without finish: all the time is item's", "with finish: each part has its own time")
    for axes, timers, title in zip(every, (naive, right), said, strict=True):
        pause = gap if timers is right else 0.0  # until Python hands over the next kernels
        at, starts, short = 0.0, {}, []
        for name, each in timers.items():
            starts[name] = at
            width = sliver if each < 10 else each - sliver * len(short)
            look = palette.ground(palette.ACTIVITY.get(name, palette.ACTIVITY["copy"]))
            style.box(axes, at, 0.1, width, 0.7, **look)
            if each < 10:
                short.append((at + width / 2, f"{name} {each:.0f} ms"))
            else:
                words = f"{name} {each:.0f} ms" + ": it waits for the device" * (name == "item")
                style.centred(axes, at + width / 2, 0.45, words, fontsize=10)
            at += width + pause
        for place, _ in short:
            axes.plot([place, place], [0.1, -0.1], color=style.GREY, lw=0.8)
        words = ", ".join(words for _, words in short)
        axes.text(short[0][0] - 0.6, -0.35, words, va="center", fontsize=10)
        free = 0.0  # when the device is done with all kernels before
        for name, each in kernels.items():
            start = starts[name] if pause else free
            if start > free:
                style.box(axes, free, 1.1, start - free, 0.7, **WAIT | {"linewidth": 0.5})
                axes.plot([start - pause / 2] * 2, [1.8, 2.05], color=style.GREY, lw=0.8)
                axes.text(start - pause, 2.3, "the queue is empty", va="center", fontsize=10)
            style.box(axes, start, 1.1, each, 0.7, **palette.ground(palette.ACTIVITY[name]))
            style.centred(axes, start + each / 2, 1.45, f"{name}'s kernels", fontsize=10)
            free = start + each
        axes.spines["left"].set_visible(False)
        axes.set(xlim=(0, 108), ylim=(2.55 if pause else 2.0, -0.6))
        axes.set_yticks([0.45, 1.45], ["Python", "device"])
        axes.tick_params(axis="y", length=0)
        axes.set_title(title, loc="left", fontsize=10)
    every[1].set_xlabel("time in milliseconds (the shortest bars and the gap are drawn wider)")
    plt.show()


def causes(least: Mapping[str, Mapping[str, float]], stands: Mapping[str, str]) -> None:
    """Milliseconds of each part of a step, for each cause; a bar that is far too long is cut.

    Args:
        least: of each cause, the seconds of each part, in the order of a step. Each is that of the
            rank with the smallest time, for it holds no waiting.
        stands: of each cause, the part in which its code stands.
    """
    title = "Four real causes, and where their time goes"
    axes = style.axes(3.0, title, "milliseconds per step (each part: the least of ranks and steps)")
    totals = sorted(1e3 * sum(parts.values()) for parts in least.values())
    end = 1.25 * totals[-2]  # the longest row may be cut here
    for row, (cause, parts) in enumerate(least.items()):
        _bar(axes, row, parts)
        names = list(parts)
        if cause in stands:
            before = sum(parts[name] for name in names[: names.index(stands[cause])])
            style.box(axes, 1e3 * before, row - 0.35, 1e3 * parts[stands[cause]], 0.7, **BLACK)
        total = 1e3 * sum(parts.values())
        words = f"sum {total:.0f} ms"
        if cause in stands:  # communication counts only if the cause sends: it also holds waiting
            named = [name for name in names if name in (*TIMED, stands[cause])]
            most = max(named, key=parts.get)
            shown = dict.fromkeys((stands[cause], most))
            words = ", ".join(f"{name} {1e3 * parts[name]:.0f}" for name in shown) + " ms"
        if total > end:
            _cut_mark(axes, end, row)
        axes.text(min(total, end) + 0.02 * end, row, words, va="center", fontsize=9)
    axes.set_xlim(0, 1.32 * end)
    ticks = [tick for tick in axes.get_xticks() if tick <= end]
    axes.set_xticks(ticks)
    axes.set_yticks(range(len(least)), ["nothing planted", *list(least)[1:]])
    axes.invert_yaxis()
    names = list(least["none"])
    frame = {"where the cause's code is": BLACK}
    _legend(axes, {name: _colour(name) for name in names}, frame=frame)
    plt.show()


TIMED = ("input", "forward", "backward", "update")  # the parts without waiting


def _cut_mark(axes: Axes, at: float, row: float) -> None:
    """End a bar here, with the mark of an axis that is cut, and white to its right."""
    style.box(axes, at, row - 0.45, 99 * at, 0.9, facecolor="white", edgecolor="none", zorder=3)
    for colour, width in (("white", 3), ("black", 1)):
        for shift in (0.93, 0.95):
            slant = [(shift - 0.008) * at, (shift + 0.008) * at]
            axes.plot(slant, [row + 0.45, row - 0.45], color=colour, lw=width, zorder=3)


def one_rank(ranks: Sequence[Mapping[str, float]], parts: Sequence[str]) -> None:
    """Milliseconds of each part of a step, a row for each rank."""
    title = "Only rank 1 decodes in Python. Rank 0 seems to have a slow network."
    axes = style.axes(1.9, title, "milliseconds per step")
    for rank, seconds in enumerate(ranks):
        _bar(axes, rank, seconds)
    style.rank_ticks(axes, range(len(ranks)))
    _legend(axes, {part: _colour(part) for part in parts})
    plt.show()


def _bar(axes: Axes, row: int, seconds: Mapping[str, float]) -> None:
    left = 0.0
    for part, each in seconds.items():
        colour = _colour(part)
        look = {"color": colour, "edgecolor": palette.outline(colour), "linewidth": 0.5}
        axes.barh(row, 1e3 * each, left=left, height=0.7, **look)
        left += 1e3 * each


def trace(
    events: Sequence[Mapping],
    messages: Sequence[Spans],
    moving: Sequence[Spans],
    work: Sequence[Spans],
) -> None:
    """What the ranks compute and send in one step of a trace.

    Args:
        events: of the trace.
        messages: of each rank, from when it began to wait.
        moving: the same, from when the last rank had come.
        work: of each rank, the operations that compute.
    """
    starts = [
        sorted(
            e["ts"]
            for e in events
            if e["name"] == "forward" and e["pid"] == rank and e.get("cat") == "user_annotation"
        )
        for rank in range(len(messages))
    ]
    begin, end = min(own[0] for own in starts), max(own[1] for own in starts)
    shown = 0.005 * (end - begin)  # the shortest exposed part that is drawn
    title = "The first of the three steps: what waits, what is hidden, what is exposed"
    axes = style.axes(3.0, title)
    axes.set_xlabel("time in milliseconds")
    for rank in range(len(messages)):
        for name in ("forward", "backward", "update"):
            named = [e for e in events if e["name"] == name and e["pid"] == rank]
            inside = [(e["ts"], e["ts"] + e["dur"]) for e in named if e["ts"] < starts[rank][1]]
            busy = _cut(work[rank], inside)
            _spans(axes, busy, rank - 0.38, 0.38, begin, palette.ACTIVITY[name])
        lanes, busy = _lanes(messages[rank]), _join(work[rank])
        height = 0.32 / (1 + max(lanes))
        for lane, (came, _), (met, left) in zip(lanes, messages[rank], moving[rank], strict=True):
            if came >= starts[rank][1]:
                continue  # of the next step
            bare = [(a, b) for a, b in _without([(met, left)], busy) if b - a > shown]
            for spans, look in (
                ([(came, met)], WAIT | {"linewidth": 0}),
                ([(met, left)], MESSAGE),
                (bare, EXPOSED),
            ):
                bars = [((a - begin) / 1e3, (b - a) / 1e3) for a, b in spans]
                axes.broken_barh(bars, (rank + 0.05 + lane * height, height), **look)
    style.rank_ticks(axes, range(len(messages)))
    axes.set_xlim(0, 1.01 * (end - begin) / 1e3)
    axes.set_ylim(len(messages) - 0.5, -0.5)
    names = ("forward", "backward", "update", "message")
    colours = {"all-reduce" if n == "message" else n: palette.ACTIVITY[n] for n in names}
    _legend(axes, colours, waits="waits for the last rank", frame={"exposed": EXPOSED})
    plt.show()


def _lanes(spans: Spans) -> list[int]:
    """A row for each span, so that spans which overlap have different rows."""
    ends: list[float] = []
    lanes = []
    for start, end in spans:
        lane = next((n for n, last in enumerate(ends) if last <= start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes.append(lane)
    return lanes


def _spans(axes: Axes, spans: Spans, bottom: float, height: float, origin: float, colour: str):
    bars = [((a - origin) / 1e3, (b - a) / 1e3) for a, b in spans]
    axes.broken_barh(bars, (bottom, height), facecolors=colour)


def _join(spans: Spans) -> list[tuple[float, float]]:
    """Spans that overlap become one."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _cut(spans: Spans, inside: Spans) -> list[tuple[float, float]]:
    """What of the spans lies inside of others."""
    both = [(max(a, c), min(b, d)) for a, b in _join(spans) for c, d in inside]
    return [(a, b) for a, b in both if a < b]


def _without(spans: Spans, others: Spans) -> list[tuple[float, float]]:
    """What of the spans lies outside of others."""
    left = list(spans)
    for c, d in others:
        parts = [part for a, b in left for part in ((a, min(b, c)), (max(a, d), b))]
        left = [(a, b) for a, b in parts if a < b]
    return left


COUNTED = {
    "weights": ("products with weights", {"facecolor": palette.MEMORY["parameters"]}),
    "seen": ("computed attention", {"facecolor": palette.MEMORY["activations"]}),
    "masked": (
        "attention behind the causal mask",
        {"facecolor": palette.MEMORY["activations"], "hatch": "///"},
    ),
}


def masked(counted: Mapping[int, Mapping[str, float]]) -> None:
    """What the formula counts, as shares, and what is left without the masked half of attention.

    Args:
        counted: of each sequence length, the FLOPs per token of each kind in `COUNTED`.
    """
    title = "What the formula counts. Fused attention skips the hatched part."
    axes = style.axes(2.3, title, "share of the counted FLOPs")
    for row, flops in enumerate(counted.values()):
        left, total = 0.0, sum(flops.values())
        for kind, each in flops.items():
            name, look = COUNTED[kind]
            if kind == "masked":
                axes.plot([left, left], [row - 0.35, row + 0.35], color="black", lw=1.6, zorder=3)
                style.centred(axes, left, row - 0.47, f"{left:.2f} is left", weight="bold")
            label = name if row == 0 else None
            frame = {"edgecolor": "#444444", "linewidth": 0.7, "height": 0.54}
            axes.barh(row, each / total, left=left, label=label, **look, **frame)
            left += each / total
    axes.set_yticks(range(len(counted)), [f"T = {length:,} tokens" for length in counted])
    axes.set_xlim(0, 1.01)
    axes.set_ylim(len(counted) - 0.55, -0.75)
    axes.figure.legend(frameon=False, fontsize=8.5, ncols=3, loc="outside lower center")
    plt.show()


def one_run(counted: Mapping[int, Mapping[str, float]]) -> None:
    """One MFU, counted in several ways, at several lengths."""
    names = list(next(iter(counted.values())))
    title = "One run, four numbers: the MFU as others might count it"
    every = style.panels(1, len(counted), 2.4, title, sharey=True)
    for axes, (length, ratios) in zip(every, counted.items(), strict=True):
        look = {"color": palette.ACTIVITY["forward"], "edgecolor": "#4A7A86", "linewidth": 0.6}
        axes.barh(names, list(ratios.values()), height=0.66, **look)
        for row, ratio in enumerate(ratios.values()):
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(ratio + 0.03, row, f"{ratio:.2f}", va="center", fontsize=9, bbox=ground)
        axes.axvline(1, color=palette.NEUTRAL, linestyle="--", linewidth=0.9)
        axes.set_xlim(0, 1.6)
        axes.set_xlabel("times the MFU as PaLM counts it")
        axes.set_title(f"T = {length:,} tokens", loc="left", fontsize=10)
    every[0].invert_yaxis()
    plt.show()


KINDS = {"Activation": "activations", "Parameter": "parameters", "Temp": "other"}


def segments(peaks: Mapping[int, Mapping[str, float]]) -> None:
    """What is alive at the peak, over the number of segments.

    Args:
        peaks: by number of segments (0: keep everything), tensors alive by kind.
    """
    title = "16 layers: few long segments or many short ones? The least is between"
    axes = style.axes(3.0, title, "number of segments k", "alive at the peak, in tensors")
    names = [str(k) if k else "off" for k in peaks]
    bottom = [0.0] * len(peaks)
    for kind, memory in KINDS.items():
        heights = [alive[kind] for alive in peaks.values()]
        colour = palette.MEMORY[memory]
        look = {"color": colour, "edgecolor": palette.outline(colour), "linewidth": 0.5}
        label = {"other": "temporary"}.get(memory, memory)
        axes.bar(names, heights, bottom=bottom, width=0.6, label=label, **look)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    every = [k for k in peaks if k]
    rule = [k + 16 / k for k in every]
    axes.plot(range(1, 1 + len(every)), rule, "o--", color=palette.NEUTRAL, label="k + L/k")
    axes.set_ylim(0, 27)
    axes.legend(frameon=False, fontsize=8.5, ncols=4, loc="upper center")
    plt.show()


def ways(found: Mapping[str, tuple[Mapping[str, float], int, int, Any]]) -> None:
    """The whole peak of each way to hold activations, by kind, beside its price.

    Args:
        found: of each way, bytes alive by kind, bytes moved away, FLOPs, gradients.
    """
    title = "Half the peak, paid for in FLOPs or in bytes that travel"
    options = {"sharey": True, "width_ratios": [3, 1.3, 1.3]}
    memory, computing, moving = style.panels(1, 3, 3.0, title, **options)
    names, least = list(found), found["keep"][2]
    left = [0.0] * len(found)
    for kind, named in PEAK.items():
        sizes = [alive[kind] / 1e6 for alive, *_ in found.values()]
        _kinds(memory, names, sizes, left, named)
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    totals = [alive["Total"] / 1e6 for alive, *_ in found.values()]
    rest = [max(0.0, total - part) for total, part in zip(totals, left, strict=True)]
    _kinds(memory, names, rest, left, "other")
    for row, total in enumerate(totals):
        memory.text(total + 3, row, f"{total:.0f}", va="center", fontsize=9)
    memory.set_xlim(0, 1.15 * max(totals))
    memory.set_xlabel("alive at the peak, in MB")
    memory.invert_yaxis()
    prices = (
        (computing, [100 * (flops / least - 1) for _, _, flops, _ in found.values()], "forward"),
        (moving, [moved / 1e6 for _, moved, *_ in found.values()], "copy"),
    )
    for axes, values, activity in prices:
        colour = palette.ACTIVITY[activity]
        look = {"color": colour, "edgecolor": palette.outline(colour), "linewidth": 0.5}
        axes.barh(names, values, height=0.66, **look)
        for row, value in enumerate(values):
            axes.text(value + 0.03 * max(values), row, f"{value:.0f}", va="center", fontsize=9)
        axes.set_xlim(0, 1.3 * max(values))
    computing.set_xlabel("FLOPs added, in %")
    moving.set_xlabel("moved away, in MB")
    memory.figure.legend(frameon=False, fontsize=8.5, ncols=4, loc="outside lower center")
    plt.show()


PEAK = {"Parameter": "parameters", "Gradient": "gradients", "Activation": "activations"}


def _kinds(axes: Axes, names: list[str], sizes: list[float], left: list[float], kind: str) -> None:
    colour = palette.MEMORY[kind]
    look = {"color": colour, "edgecolor": palette.outline(colour), "linewidth": 0.5}
    label = {"other": "temporary"}.get(kind, kind)
    axes.barh(names, sizes, left=left, height=0.66, label=label, **look)
