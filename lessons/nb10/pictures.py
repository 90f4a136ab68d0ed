"""The pictures that notebook 10 alone draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Ellipse, Patch, Rectangle
from torch import Tensor

from course_utils import palette
from course_utils.show import style

# Ways to train together: Paul Tol's bright palette (2021), which no rank and no activity has.
LOOKS = {
    "nothing sent": ("#BBBBBB", ":"),
    "after backward": ("#444444", "--"),
    "DDP": ("#4477AA", "-"),
    "DDP, Adam": ("#4477AA", "--"),
    "DDP, bf16": ("#66CCEE", "-"),
    "top-k 1 %": ("#EE6677", "-"),
    "sign": ("#AA3377", "-"),
    "PowerSGD 2": ("#CCBB44", "-"),
    "local SGD": ("#228833", "-"),
    "local SGD, H=30": ("#228833", "--"),
    "DDP, bf16, Adam": ("#66CCEE", "--"),
    "local SGD, Adam": ("#228833", ":"),
    "DiLoCo, Adam": ("#228833", "-."),
    "sign, all bytes": ("#AA3377", ":"),
    "one machine": ("black", "-"),
    "one machine, Adam": ("black", "--"),
}
SERVES, WORKS, BOTH = (palette.MEMORY[kind] for kind in ("parameters", "gradients", "gathered"))
NEW, OLD = palette.MEMORY["gradients"], palette.MEMORY["optimizer"]


def who_talks() -> None:
    """Servers above, workers below, and an arrow for each pair that exchanges messages."""
    title = "Each arrow is a pull and a push; workers never talk to each other"
    names = ("one server,\nthree workers", "three servers,\nthree workers", "four ranks do both")
    every = style.panels(1, 3, 2.5, title, bare=True)
    for axes, name in zip(every, names, strict=True):
        axes.set(xlim=(-0.7, 3.1), ylim=(-0.75, 1.9), aspect="equal")
        axes.set_title(name, fontsize=10)
        if "both" in name:
            places = [(0.2, 1.25), (2.2, 1.25), (0.2, -0.1), (2.2, -0.1)]
            ranks = [_node(axes, x, y, f"{n}", BOTH) for n, (x, y) in enumerate(places)]
            for one in range(4):
                for other in range(one):
                    _talk(axes, ranks[one], ranks[other])
            continue
        servers = [1.2] if "one" in name else [0.0, 1.2, 2.4]
        above = [_node(axes, x, 1.25, f"{n}", SERVES) for n, x in enumerate(servers)]
        for n, x in enumerate((0.0, 1.2, 2.4)):
            worker = _node(axes, x, -0.1, f"{n + len(servers)}", WORKS)
            for server in above:
                _talk(axes, worker, server)
    _roles(every[-1])
    plt.show()


def _node(axes: Axes, x: float, y: float, name: str, hue: str) -> Circle:
    circle = axes.add_patch(Circle((x, y), 0.3, linewidth=1.3, zorder=3, **palette.ground(hue)))
    axes.text(x, y, name, ha="center", va="center", fontsize=9, zorder=4)
    return circle


def _talk(axes: Axes, one: Circle, other: Circle) -> None:
    look = {"arrowstyle": "<|-|>", "color": palette.NEUTRAL, "lw": 0.9}
    ends = {"patchA": one, "patchB": other, "shrinkA": 1, "shrinkB": 1}
    axes.annotate("", other.center, one.center, arrowprops=look | ends)


def _roles(axes: Axes) -> None:
    hands = [Patch(**palette.ground(hue)) for hue in (SERVES, WORKS, BOTH)]
    names = ("server", "worker", "both")
    place = {"loc": "outside lower center", "ncols": 3, "frameon": False, "fontsize": 9}
    axes.figure.legend(hands, names, **place)


def groups() -> None:
    """A cluster with a group of servers, and a group of workers for each application."""
    axes = style.axes(3.1, "One group of servers, a group of workers for each training")
    axes.axis("off")
    axes.set(xlim=(0, 10), ylim=(0, 4.05))
    _group(axes, 2.6, 2.45, 4.8, "server group", SERVES, "server\nmanager", "server")
    for left, name in ((0.1, "worker group: training A"), (5.1, "worker group: training B")):
        _group(axes, left, 0.1, 4.8, name, WORKS, "", "worker")
        for worker in range(3):
            x = left + 0.9 + 1.53 * worker
            for server in range(3):
                look = {"arrowstyle": "<|-|>", "color": palette.NEUTRAL, "lw": 0.6}
                ends = (4.42 + 1.15 * server, 2.63), (x, 1.27)
                axes.annotate("", *ends, arrowprops=look | {"mutation_scale": 7})
    style.box(axes, 0.1, 2.75, 1.9, 0.85, linewidth=1.3, **palette.ground("#999999"))
    style.centred(axes, 1.05, 3.17, "resource\nmanager", fontsize=8.5)
    words = "gives machines\nto the groups"
    style.centred(axes, 1.05, 2.4, words, fontsize=8, color=style.GREY)
    words = "pull and push:\nwith servers only"
    style.centred(axes, 8.8, 2.0, words, fontsize=8, color=style.GREY)
    plt.show()


def _group(axes: Axes, left: float, low: float, width: float, *words: str) -> None:
    """A frame with its name, three members, and a manager if it has one."""
    name, hue, manager, member = words
    style.box(axes, left, low, width, 1.35, fill=False, edgecolor=hue, linewidth=1.4)
    above = bool(manager)  # arrows come from the other side
    style.centred(axes, left + width / 2, low + (1.17 if above else 0.2), name, fontsize=9)
    names = [manager] * above + [member] * 3
    step = (width - 0.2) / len(names)
    bottom = low + (0.2 if above else 0.42)
    for number, inside in enumerate(names):
        x = left + 0.15 + number * step
        ground = palette.ground("#999999" if inside == manager else hue)
        style.box(axes, x, bottom, step - 0.1, 0.72, linewidth=1.2, **ground)
        style.centred(axes, x + step / 2 - 0.05, bottom + 0.36, inside, fontsize=8.5)


def traffic(carried: Sequence[Sequence[float]], layouts: Mapping[str, tuple]) -> None:
    """How many copies of the model pass through each rank, in each layout."""
    title = "How many copies of the model pass through each rank per step"
    every = style.panels(1, len(layouts), 2.9, title, sharey=True)
    for axes, (name, (serve, work)), values in zip(every, layouts.items(), carried, strict=True):
        ranks = sorted({*serve, *work})
        for rank in ranks:
            hue = SERVES if rank not in work else BOTH if rank in serve else WORKS
            axes.bar(rank, values[rank], linewidth=1.2, **palette.ground(hue))
            style.centred(axes, rank, values[rank] + 0.25, f"{values[rank]:.1f}")
        axes.set_title(name, fontsize=9)
        axes.set_xticks(ranks)
        axes.set_xlabel("rank")
    every[0].set_ylabel("in and out, in units of S")
    every[0].set_ylim(0, 7)
    _roles(every[-1])
    plt.show()


def carries_over(steps: Sequence[tuple[Sequence[float], Sequence[float], int]]) -> None:
    """What error feedback carries from one step to the next.

    Args:
        steps: of each step the gradient, what was kept before, and the place that is sent.
    """
    title = "Top-1 of four values: what is not sent waits, and grows until it is the largest"
    every = style.panels(1, len(steps), 2.8, title, sharey=True)
    for number, (axes, (gradient, kept, sent)) in enumerate(zip(every, steps, strict=True), 1):
        for place, (new, old) in enumerate(zip(gradient, kept, strict=True)):
            axes.bar(place, old, linewidth=1.2, **palette.ground(OLD))
            axes.bar(place, new, bottom=old, linewidth=1.2, **palette.ground(NEW))
            if place == sent:
                frame = {"fill": False, "edgecolor": "black", "linewidth": 2}
                axes.add_patch(Rectangle((place - 0.46, 0), 0.92, new + old, **frame))
                style.centred(axes, place, new + old + 0.15, "sent", fontsize=8.5)
        axes.set_title(f"step {number}", fontsize=10)
        axes.set_xticks(range(len(gradient)))
        axes.set_xlabel("place")
    every[0].set_ylabel("gradient + kept")
    every[0].set_ylim(0, 2.4)
    hands = [Patch(**palette.ground(hue)) for hue in (NEW, OLD)]
    names = ("this step's gradient", "kept from the steps before")
    place = {"loc": "outside lower center", "ncols": 2, "frameon": False, "fontsize": 9}
    every[-1].figure.legend(hands, names, **place)
    plt.show()


def growth(ranks: Sequence[int], curves: Mapping[str, Sequence[float]]) -> None:
    """Bytes that each rank sends, over the number of ranks; the first curve is the plain one."""
    title = "All-gathers send more with every rank; all-reduces stay flat"
    axes = style.axes(3.4, title, "ranks N (log)", "kB sent by each rank (log)")
    hues = {"plain": "#4477AA", "top-k": "#EE6677", "sign": "#AA3377", "two": "#CCBB44"}
    plain = next(iter(curves.values()))
    for name, sent in curves.items():
        hue, kilobytes = hues[name.split()[0]], [b / 1e3 for b in sent]
        axes.loglog(ranks, kilobytes, color=hue, linewidth=2)
        words = {"xytext": (6, 0), "textcoords": "offset points", "fontsize": 9, "va": "center"}
        axes.annotate(name, (ranks[-1], kilobytes[-1]), color=palette.outline(hue), **words)
        if sent[0] < plain[0] and sent[-1] > plain[-1]:  # the ratio of the two grows as N
            equal = ranks[0] * plain[0] / sent[0]
            axes.plot(equal, plain[-1] / 1e3, "o", color="black", mfc="white", ms=7, zorder=5)
            above = "sign" in name
            look = {"ha": "right" if above else "left", "va": "bottom" if above else "top"}
            place = (-9, 7) if above else (9, -9)
            axes.annotate(f"{name.split()[0]} meets the plain\nall-reduce at N = {equal:.0f}",
                          (equal, plain[-1] / 1e3), xytext=place, textcoords="offset points",
                          fontsize=9, **look)  # fmt: skip
    axes.set_xticks(ranks, ranks)
    axes.set_yticks((10, 100, 1000, 10_000), ("10", "100", "1,000", "10,000"))
    axes.minorticks_off()
    plt.show()


def strengths(values: Tensor, share: float) -> None:
    """Singular values of a gradient, the strongest first; `share` is what the first two hold."""
    title = "One gradient of 256 x 512: few directions hold most of it"
    across, up = "direction, strongest first (20 of 256)", "singular value / first"
    axes = style.axes(2.5, title, across, up)
    for number, value in enumerate((values[:20] / values[0]).tolist(), 1):
        axes.bar(number, value, linewidth=1.2, **palette.ground(NEW if number < 3 else "#999999"))
    axes.set_xticks((1, 2, 5, 10, 15, 20))
    axes.text(3, 0.8, f"the first two hold {share:.0%} of the squared length")
    plt.show()


def column_times_row(
    matrix: Tensor, p: Tensor, q: Tensor, shown: tuple[int, int] = (16, 32)
) -> None:
    """A corner of a matrix as a sum: columns of p times rows of q^T, and the rest."""
    high, wide = shown
    p, q, matrix = p[:high], q[:wide], matrix[:high, :wide]
    limit = matrix.abs().quantile(0.98).item()  # one scale for all matrices
    axes = style.axes(2.1, f"A corner of M, {high} x {wide} of its 256 x 512 values, as a sum")
    axes.axis("off")

    def drawn(values: Tensor, left: float, top: float, most: float) -> None:
        rows, columns = values.shape
        place = (left, left + columns, top + rows, top)
        axes.imshow(values, cmap="RdBu", vmin=-most, vmax=most, extent=place)
        frame = {"fill": False, "edgecolor": style.GREY, "linewidth": 0.8}
        style.box(axes, left, top, columns, rows, **frame)

    left = 0.0
    drawn(matrix, left, 0, limit)
    style.centred(axes, left + wide / 2, high + 2, "M")
    for number, name in enumerate(("first", "second")):
        style.centred(axes, left + wide + 2.5, high / 2, "+" if number else "=", fontsize=13)
        left += wide + 7
        column, row = p[:, number : number + 1], q[:, number : number + 1].T
        drawn(column, left - 2, 0, column.abs().max().item())  # each in a scale of its own
        drawn(row, left, -2, row.abs().max().item())
        drawn(column * row, left, 0, limit)
        words = f"{name} column times {name} row"
        style.centred(axes, left + wide / 2, high + 2, words)
    style.centred(axes, left + wide + 2.5, high / 2, "+", fontsize=13)
    left += wide + 5
    drawn(matrix - p @ q.T, left, 0, limit)
    style.centred(axes, left + wide / 2, high + 2, "the rest")
    axes.set(xlim=(-1, left + wide + 1), ylim=(high + 3.5, -2.5), aspect="equal")
    plt.show()


def found(best: Tensor, held: Tensor) -> None:
    """Shares of M's squared length, (starts, steps): of the best two directions, and of p q^T."""
    title = "What two directions of M can hold, and what one iteration finds of it"
    every = style.panels(1, len(best), 2.6, title, sharey=True)
    for start, axes in enumerate(every):
        axes.plot(best[start], "--", color=palette.NEUTRAL, label="the best two directions")
        axes.plot(held[start], color=palette.outline(NEW), label="p qᵀ")
        axes.set_title(f"start {start}", fontsize=10)
        axes.set_xlabel("step")
    every[0].set_ylabel("share of its\nsquared length")
    every[0].set_ylim(0, 1)
    hands, names = every[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": 2, "frameon": False, "fontsize": 9}
    every[-1].figure.legend(hands, names, **place)
    plt.show()


def drift(
    targets: Tensor, steep: Tensor, paths: Tensor, meetings: Sequence[Tensor], best: Tensor
) -> None:
    """Ranks that walk alone and meet: each toward what its own data want.

    Args:
        targets: (N, 2): where each rank's own loss is smallest.
        steep: (N, 2): how steep each rank's loss is in each direction.
        paths: (rounds, N, steps, 2): where each rank is, from one meeting to the next.
        meetings: where they meet, the start first.
        best: (2,): where the mean of all losses is smallest.
    """
    title = "Local SGD: between two meetings every rank walks toward its own data"
    axes = style.axes(3.9, title, "one parameter", "another parameter")
    for rank, target in enumerate(targets.tolist()):
        axes.plot(*target, "*", color=palette.colour(rank), ms=13)
        ring = (2 * (0.12 / steep[rank]).sqrt()).tolist()  # where the loss is the same
        look = {"fill": False, "edgecolor": palette.colour(rank), "linewidth": 1, "alpha": 0.6}
        axes.add_patch(Ellipse(target, *ring, linestyle="--", **look))
        side = 1 if target[1] > best[1] else -1  # outside: the paths are between the rings
        place = (target[0], target[1] + side * ring[1] / 2)
        look = {"ha": "center", "va": "bottom" if side > 0 else "top", "color": style.GREY}
        axes.annotate(f"best for rank {rank}", place, xytext=(0, 4 * side),
                      textcoords="offset points", fontsize=8, **look)  # fmt: skip
        for number, one in enumerate(paths[:, rank]):
            label = f"rank {rank} alone" if number == 0 else None
            axes.plot(*one.T, ".-", color=palette.colour(rank), ms=4, linewidth=1.2, label=label)
    for number, place in enumerate(meetings):
        label = "a meeting: the average" if number == 1 else None
        axes.plot(*place, "o", color="black", ms=7, label=label, zorder=5)
    axes.plot(*best.tolist(), "*", color="black", ms=13, label="best for all", zorder=6)
    axes.margins(0.08)
    axes.set_aspect("equal", anchor="W")
    axes.annotate("start", meetings[0], xytext=(-4, 9), textcoords="offset points", fontsize=8)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


def set_up(layers: int, layer: float, message: float, buckets: int = 1) -> None:
    """One step to scale, times in milliseconds: each bucket is sent once its gradients are ready.

    With one bucket, everything is sent after backward.
    """
    title = "The step that we time, at 100 Mbit/s: compute first, then send"
    if buckets > 1:
        title = "DDP's step, calculated for 100 Mbit/s: what hides, and the tail"
    axes = style.axes(1.9, title, "ms")
    forward, backward = palette.ACTIVITY["forward"], palette.ACTIVITY["backward"]
    axes.barh(0, 3, left=0, color=forward, edgecolor=palette.outline(forward))
    for number in range(layers):
        look = {"facecolor": backward, "edgecolor": "white", "linewidth": 1}
        axes.barh(0, layer, left=3 + number * layer, **look)
    end, sent, hue = 3 + layers * layer, 0.0, palette.ACTIVITY["message"]
    for number in range(buckets):
        start = max(sent, 3 + (number + 1) * layers * layer / buckets)
        sent = start + message / buckets
        axes.barh(1, message / buckets, left=start, color=hue, edgecolor=palette.outline(hue))
        words = f"bucket {number + 1}" if buckets > 1 else "all-reduce of all gradients"
        style.centred(axes, (start + sent) / 2, 1, words, fontsize=8.5)
    words = f"forward, then backward: {layers} layers of {layer:g} ms, the last layer first"
    axes.text(0.8, -0.62, words, fontsize=8.5, va="bottom")
    axes.set_yticks((0, 1), ("computes", "sends"))
    axes.set_ylim(1.5, -1.1)
    axes.set_xlim(0, end + message + 6)
    plt.show()


def losses(look: int, found: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """The loss over the steps until a way arrives: a panel for each way, with DDP behind it.

    Args:
        look: steps between two looks.
        found: of each way its seeds, and of each seed its losses.
    """
    plain = [look * len(one) for one in found["DDP"]]
    title = f"Each way until it arrives, three seeds; pale: DDP, {min(plain)} to {max(plain)} steps"
    names = ("DDP, bf16", "sign", "sign, all bytes", "DDP, Adam")
    names += ("top-k 1 %", "PowerSGD 2", "local SGD", "local SGD, H=30")
    every = style.panels(2, 4, 4.6, title, sharex=True, sharey=True)
    pale = {"color": "#C3D3E3", "linewidth": 3, "ms": 9}
    for axes, name in zip(every, names, strict=True):
        bright = {"color": LOOKS[name][0], "linewidth": 1.3, "ms": 5}
        for way, looks in (("DDP", pale), (name, bright)):
            for one in found[way]:
                steps = [look * (at + 1) for at in range(len(one))]
                axes.plot(steps, one, "-o", markevery=[-1], **looks)
        axes.axhline(0.1, color=palette.NEUTRAL, linewidth=0.8, linestyle=":")
        ends = [look * len(one) for one in found[name]]
        axes.set_title(f"{name}\n{min(ends)} to {max(ends)} steps", fontsize=9.5)
        axes.set_yscale("log")
        axes.set_yticks((0.1, 1), ("0.1", "1"))
        axes.set_xticks((20, 40, 60, 80))
    for axes in every[4:]:
        axes.set_xlabel("step")
    for axes in every[::4]:
        axes.set_ylabel("training loss,\nnats (log)")
    plt.show()


def seconds_per_step(
    dots: Mapping[str, Mapping[float, float]],
    rates: Sequence[float] = (),
    lines: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Seconds of a step over the bandwidth.

    Args:
        dots: way, Mbit/s: the seconds that were measured.
        rates, lines: Mbit/s, and for each way the seconds of a formula; without them the dots
            are joined.
    """
    title = "How long a step takes: the slower the link, the more sending less saves"
    if lines:
        title = "Seconds of a step: the formula beside the measurements"
    axes = style.axes(3.7, title, "bandwidth of each link, bit/s (log)", "ms per step (log)")
    for name, points in dots.items():
        hue, kind = LOOKS[name]
        wide = 2.4 if name == "DDP" else 1.4
        x, y = (rates, lines[name]) if lines else (list(points), list(points.values()))
        axes.plot(x, [1e3 * s for s in y], kind, color=hue, linewidth=wide, label=name)
        axes.plot(list(points), [1e3 * s for s in points.values()], "o", color=hue, ms=5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = {10: "10 M", 100: "100 M", 1000: "1 G", 10_000: "10 G"}
    if not lines:
        ticks = {20: "20 M", 100: "100 M", 1000: "1 G"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_yticks((100, 200, 400, 800), ("100", "200", "400", "800"))
    axes.minorticks_off()
    if lines:
        words, place = "line: formula\ndot: measured", axes.transAxes
        axes.text(0.99, 0.97, words, transform=place, ha="right", va="top", fontsize=8.5)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


def totals(
    found: Mapping[int, Mapping[str, tuple[float, float, float]]], first: Mapping[str, str]
) -> None:
    """Seconds to the loss: the median over the seeds, and their range, group by group.

    Args:
        found: Mbit/s, way: the smallest, the middle and the largest seconds.
        first: of each way the first row of its group, which sends all bytes.
    """
    title = "Seconds to a loss of 0.1: the middle seed, and the range of three seeds"
    longest = [1.06 * max(high for _, _, high in ways.values()) for ways in found.values()]
    every = style.panels(1, len(found), 4.2, title, sharey=True, width_ratios=longest)
    heads = list(dict.fromkeys(first.values()))
    names = sorted(first, key=lambda name: heads.index(first[name]))
    rows = {name: at + 0.7 * heads.index(first[name]) for at, name in enumerate(names)}
    for axes, end, (mbit, ways) in zip(every, longest, found.items(), strict=True):
        for name, (low, middle, high) in ways.items():
            hue, row = LOOKS[name][0], rows[name]
            axes.plot((low, high), (row, row), color=hue, linewidth=3, alpha=0.45)
            axes.plot(middle, row, "o", color=hue, ms=6)
        for head in heads:
            group = [rows[name] for name in names if first[name] == head]
            across = ways[head][1]
            ends = (group[0], group[-1] + 0.4)
            axes.plot((across, across), ends, ":", color="black", lw=1.2, zorder=1)
        axes.set_title(f"{mbit} Mbit/s" if mbit < 1000 else f"{mbit / 1000:g} Gbit/s", fontsize=10)
        axes.set_xlim(0, end)  # a second is equally long in every panel
        axes.set_xticks(range(0, int(end) + 1, 5))
        axes.set_xlabel("seconds")
        axes.grid(axis="x", alpha=0.25)
    every[0].set_yticks(list(rows.values()), names)
    every[0].invert_yaxis()
    words = "dotted: the first row of a group, which sends all bytes; all panels have one scale"
    every[0].figure.supxlabel(words, fontsize=9, color=style.GREY)
    plt.show()
