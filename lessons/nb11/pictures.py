"""The pictures that notebook 11 alone draws."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from course_utils.show import style
from nbtorchrun import palette

# Ways to compute attention: Paul Tol's bright palette (2021), which no rank and no activity has.
LOOKS = {
    "ring": ("#4477AA", "o", "-"),
    "all-gather": ("#228833", "s", ":"),
    "Ulysses": ("#AA3377", "^", "--"),
    "one process": ("#888888", "D", "-"),
    "one process, all scores": ("#EE6677", "P", "-"),
}
CANDIDATES = ("#4477AA", "#EE6677", "#AA3377")
DOCUMENTS = {"contiguous": "#EE6677", "zigzag": "#4477AA", "zigzag per document": "#228833"}
ARROW = {"arrowstyle": "-|>", "color": palette.NEUTRAL, "lw": 1.2}


def tolerance(candidates: Mapping[str, Mapping[str, Tensor]], allowed: float) -> None:
    """Each candidate's dq against the right one, as the tolerance sees it, and closer."""
    title = "The test accepts everything between the lines"
    every = style.panels(1, 2, 3.1, title)
    right, allowed = 1e3 * candidates["right"]["dq"].flatten()[::24], 1e3 * allowed
    largest = right.abs().max().item()
    for axes, size, words in zip(
        every, (1.25 * allowed, 1.15 * largest), ("as the test sees it", "closer"), strict=True
    ):
        for (name, found), colour, mark in zip(candidates.items(), CANDIDATES, "o^s", strict=True):
            values = 1e3 * found["dq"].flatten()[::24]
            axes.scatter(right, values, s=9, color=colour, marker=mark, label=name, alpha=0.7, lw=0)
        for end in (-allowed, allowed):
            axes.axline((0, end), slope=1, color=palette.NEUTRAL, linestyle="--", linewidth=1)
        axes.set(xlim=(-size, size), ylim=(-size, size))
        axes.set_xlabel("right dq, in thousandths")
        axes.set_ylabel("candidate's dq, in thousandths")
        axes.set_title(words, loc="left", fontsize=10)
    every[0].text(0.5 * allowed, -0.6 * allowed, "tolerance", ha="left", va="top", fontsize=8)
    every[1].legend(frameon=False, fontsize=8, loc="upper left", markerscale=1.5)
    plt.show()


def _rows(axes: Axes, words: str = "rank {0}: Q{0}") -> None:
    for rank in range(4):
        axes.text(-0.16, rank, words.format(rank), ha="right", va="center", weight="bold")
        axes.plot([-0.1, -0.1], [rank - 0.3, rank + 0.3], color=palette.colour(rank), linewidth=3)


def _next(axes: Axes, step: int, rank: int, width: float, height: float = 0.0) -> None:
    """An arrow from a rank to the next one, in the next step; from the last to the first."""
    target = (rank + 1) % 4
    start, end = (step + width, rank + height), (step + 1, target + height)
    if target:
        axes.annotate("", end, start, arrowprops=ARROW)
        return
    # Dotted, it climbs beside the boxes and turns to the right: its head meets no edge.
    turn = (step + 0.94, target + height)
    look = {"arrowstyle": "-", "shrinkB": 0, "connectionstyle": "angle3,angleA=83,angleB=0"}
    axes.annotate("", turn, start, arrowprops=ARROW | look | {"linestyle": ":"})
    axes.annotate("", end, turn, arrowprops=ARROW | {"shrinkA": 0})


def ring() -> None:
    """Whose K and V each of four ranks has in each step of the forward ring."""
    axes = style.axes(3.2, "Forward: K and V travel, queries stay. Four steps, three messages")
    axes.axis("off")
    for step, rank in ((step, rank) for step in range(4) for rank in range(4)):
        owner = (rank - step) % 4  # whose piece has come this far
        look = palette.ground(palette.colour(owner))
        style.box(axes, step, rank - 0.3, 0.6, 0.6, **look)
        style.centred(axes, step + 0.3, rank, f"K{owner} V{owner}", weight="bold")
        if step < 3:
            _next(axes, step, rank, 0.6)
    _rows(axes)
    for step in range(4):
        axes.text(step + 0.3, -0.6, f"step {step}", ha="center", color=style.GREY)
    axes.set(xlim=(-0.9, 3.7), ylim=(3.5, -0.8))
    plt.show()


def backward_ring() -> None:
    """Whose dk and dv each rank adds to in each step, and what each variable of the code holds."""
    title = "Backward: dk and dv follow their K and V, grow in every step, and go home"
    axes = style.axes(4.4, title)
    axes.axis("off")
    wide, half = 0.72, 0.36

    def holds(left: float, rank: int, owner: int, name: str, queries: Sequence[int]) -> None:
        """A variable of the code, and the queries whose gradients are added up in it."""
        look = palette.ground(palette.colour(owner), 0.12)
        look |= {"linestyle": ":"} if name == "own" else {}
        style.box(axes, left, rank - 0.08, half, 0.46, **look)
        style.centred(axes, left + half / 2, rank + 0.06, name, fontsize=8, family="monospace")
        said = "Q" + ", ".join(str(each % 4) for each in queries)
        style.centred(axes, left + half / 2, rank + 0.26, said, fontsize=7)

    for step, rank in ((step, rank) for step in range(5) for rank in range(4)):
        owner = (rank - step) % 4
        if step < 4:
            look = palette.ground(palette.colour(owner))
            style.box(axes, step, rank - 0.42, wide, 0.32, **look)
            style.centred(axes, step + half, rank - 0.26, f"K{owner} V{owner}", fontsize=8)
        else:
            style.centred(axes, step + half, rank - 0.24, f"dk{owner} dv{owner}", fontsize=8)
        if step > 1:  # the sum of the ranks between the owner and this one
            holds(step, rank, owner, "dkv", range(owner + 1, owner + step))
        mine = "own" if step in (0, 4) else "part"
        holds(step + half, rank, owner, mine, [rank])
        if step in (1, 2, 3):
            _next(axes, step, rank, wide, 0.15)
    _rows(axes, "rank {0}")
    for step in range(5):
        words = f"step {step}" if step < 4 else "home"
        axes.text(step + half, -0.62, words, ha="center", color=style.GREY)
    said = "A colour is the rank that K, V, dk and dv belong to. "
    said += "Q1, 2: what the queries of ranks 1 and 2 add to dk and dv"
    axes.text(0, 3.78, said, fontsize=8, color=style.GREY)
    axes.set(xlim=(-0.75, 4.8), ylim=(3.85, -0.87))
    plt.show()


def hidden(events: Sequence[str], messages: Sequence[Sequence[Any]]) -> None:
    """What a rank does, call by call, and each message from its start to where it is waited for.

    Args:
        events: "computes", "sends", and "turn" between forward and backward.
        messages: what travels, the event at which it starts, and the one before which it ends.
    """
    title = "Between start and wait of every message but the last, rank 0 computes"
    axes = style.axes(2.6, title, "the rank's calls, in their order")
    turn = events.index("turn")
    for at, what in enumerate(events):
        if what == "computes":
            colour = palette.ACTIVITY["forward" if at < turn else "backward"]
            look = {"facecolor": colour, "edgecolor": palette.outline(colour)}
            axes.broken_barh([(at, 1)], (-0.34, 0.68), **look)
    for what, start, end in messages:
        colour, alone = palette.ACTIVITY["message"], "computes" not in events[start:end]
        look = {"facecolor": colour, "edgecolor": palette.outline(colour)}
        look |= {"hatch": "////"} if alone else {}
        length = max(end - start - 0.1, 0.5)
        axes.broken_barh([(start + 0.05, length)], (0.66 + (what != "K, V"), 0.68), **look)
        if alone:
            words = "nothing left to\nhide behind"
            axes.text(start + length + 0.15, 2, words, va="center", fontsize=8)
    axes.set_yticks(range(3), ["computes", "K and V travel", "dk and dv travel"])
    axes.set_ylim(2.6, -0.95)
    axes.set_xlim(-0.2, len(events) + 3)
    axes.set_xticks(())
    axes.axvline(turn + 0.5, color=palette.NEUTRAL, linestyle="--", linewidth=1)
    for x, words, side in ((turn + 0.3, "forward", "right"), (turn + 0.7, "backward", "left")):
        axes.text(x, -0.9, words, ha=side, va="top", fontsize=9, color=style.GREY)
    plt.show()


def waits(work: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """When each rank computes in the ring, and when it waits for the slowest of that step.

    Args:
        work: for each layout, a rank's steps, in full blocks of scores.
    """
    title = "The ring under a causal mask: who waits?"
    every = style.panels(len(work), 1, 0.9 + 1.6 * len(work), title)
    _lanes(every, work)
    plt.show()


def _lanes(every: Sequence[Axes], work: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """A lane for each rank: a step lasts as long as the slowest rank computes."""
    spent = {name: sum(map(max, zip(*ranks, strict=True))) for name, ranks in work.items()}
    end = max(spent.values())
    grey = {"facecolor": palette.ACTIVITY["wait"], "edgecolor": palette.NEUTRAL, "linewidth": 0.6}
    for axes, (name, ranks) in zip(every, work.items(), strict=True):
        start, count = 0.0, len(ranks)
        for step, units in enumerate(zip(*ranks, strict=True)):
            for rank, computes in enumerate(units):
                if computes:
                    look = palette.ground(palette.colour(rank))
                    style.box(axes, start, rank - 0.4, computes, 0.8, **look)
                    words = f"K{(rank - step) % count}"
                    style.centred(axes, start + computes / 2, rank, words, fontsize=8)
                if computes < max(units):
                    left, width = start + computes, max(units) - computes
                    style.box(axes, left, rank - 0.4, width, 0.8, **grey)
                    style.centred(axes, left + width / 2, rank, "waits", fontsize=8)
            look = {"fontsize": 8, "color": style.GREY}
            style.centred(axes, start + max(units) / 2, -0.75, f"step {step}", **look)
            start += max(units)
        if start < end:
            style.centred(axes, (start + end) / 2, (count - 1) / 2, "all have finished", fontsize=8)
        idle = 1 - sum(map(sum, ranks)) / (count * spent[name])
        axes.set_title(f"{name}: waiting {idle:.0%} of the time", loc="left", fontsize=10)
        axes.set(
            xlim=(0, 1.004 * end), ylim=(count - 0.5, -1.1), xlabel="time, in full blocks of scores"
        )
        axes.set_yticks(range(count), [f"rank {rank}" for rank in range(count)], fontsize=8)


def work(
    layout: ModuleType, visible: Callable[..., list], name: str, length: int, ranks: int
) -> list[list[float]]:
    """What each rank computes in each step, in full blocks of scores; a triangle is half of one.

    Args:
        layout: has `pieces`, the positions of each rank.
        visible: the ring's function that says which pieces see each other.
        name: of the layout.
    """
    cut = [layout.pieces(length, rank, ranks, name) for rank in range(ranks)]

    def scores(rank: int, step: int) -> float:
        pairs = visible(cut[rank], cut[(rank - step) % ranks], causal=True)
        return sum(
            (q.stop - q.start) * (k.stop - k.start) / (2 if diagonal else 1)
            for q, k, diagonal in pairs
        )

    full = (length / ranks) ** 2
    return [[scores(rank, step) / full for step in range(ranks)] for rank in range(ranks)]


def masks(layout: ModuleType, work: Mapping[str, Sequence[Sequence[float]]], length: int) -> None:
    """Which rank computes which score under a causal mask, for two layouts, and when.

    Args:
        layout: has `pieces`, the positions of each rank.
        work: for each layout, a rank's steps, in full blocks of scores.
        length: of the sequence.
    """
    title = f"{length} positions on 4 ranks: who computes which score, and who waits?"
    every = style.mosaic("AB;CD", 5.4, title, height_ratios=[2.2, 1])
    for axes, (name, steps) in zip(every[:2], work.items(), strict=True):
        middles = {}
        for rank in range(len(steps)):
            for start, place in layout.pieces(length, rank, len(steps), name):
                rows = range(start, start + place.stop - place.start)
                _scores(axes, rows, rank, [0] * length)
                middles[start + len(rows) / 2] = f"rank {rank}"
        _frame(axes, length, name)
        axes.set_yticks(list(middles), list(middles.values()), fontsize=8)
    _lanes(every[2:], work)
    plt.show()


def _scores(axes: Axes, rows: Sequence[int], rank: int, first: Sequence[int]) -> None:
    """The scores of some queries in the colour of their rank; `first` key of each query."""
    style_of = {"facecolor": palette.colour(rank), "edgecolor": "white", "lw": 0.4}
    for row in rows:
        for key in range(first[row], row + 1):
            axes.add_patch(plt.Rectangle((key, row), 1, 1, **style_of))


def _frame(axes: Axes, length: int, title: str) -> None:
    axes.set(xlim=(0, length), ylim=(length, 0), xlabel="key", ylabel="query", aspect="equal")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xticks(())
    axes.set_yticks(())


def documents(layout: ModuleType, lengths: Sequence[int], ranks: int) -> None:
    """Packed documents under their mask: zigzag over all, and zigzag in each."""
    total = sum(lengths)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    first = [start for start, length in zip(starts, lengths, strict=True) for _ in range(length)]
    title = f"{len(lengths)} documents of {', '.join(map(str, lengths))} positions, {ranks} ranks"
    every = style.panels(1, 2, 3.9, title)
    for axes, name in zip(every, ("zigzag", "zigzag per document"), strict=True):
        for rank in range(ranks):
            parts = [(0, total)] if name == "zigzag" else list(zip(starts, lengths, strict=True))
            rows = [
                begin + start + p
                for begin, length in parts
                for start, place in layout.pieces(length, rank, ranks, "zigzag")
                for p in range(place.stop - place.start)
            ]
            _scores(axes, rows, rank, first)
            said = f"rank {rank}: {sum(row + 1 - first[row] for row in rows)} scores"
            axes.add_patch(plt.Rectangle((0, 0), 0, 0, color=palette.colour(rank), label=said))
        axes.legend(frameon=False, fontsize=9, loc="upper right", borderaxespad=0)
        _frame(axes, total, name)
    plt.show()


def packings(busy: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """The share of time that ranks are busy, for many packings: one dot for each.

    Args:
        busy: kind of packing, then layout, to the shares.
    """
    title = "How busy are the ranks? Each dot is one packed sequence"
    axes = style.axes(3.1, title, "busy share: mean work of a rank / largest work of a rank")
    random = torch.Generator().manual_seed(0)
    for row, layouts in enumerate(busy.values()):
        for place, (name, shares) in enumerate(layouts.items()):
            middle = row + 0.26 * (place - 1)
            spread = 0.16 * (torch.rand(len(shares), generator=random) - 0.5)
            colour, label = DOCUMENTS[name], name if row == 0 else None
            axes.scatter(shares, middle + spread, s=14, color=colour, label=label, alpha=0.7, lw=0)
        if row:
            axes.axhline(row - 0.5, color="#DDDDDD", linewidth=0.8)
    axes.set_yticks(range(len(busy)), [f"{kind} spread\nof lengths" for kind in busy])
    axes.set_ylim(len(busy) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    look = {"frameon": False, "fontsize": 8, "markerscale": 1.5, "ncols": 3}
    axes.figure.legend(loc="outside lower right", **look)
    plt.show()


def ulysses(ranks: int, heads: int) -> None:
    """Who holds which positions of which heads, before, between and after the exchanges."""
    title = f"Ulysses on {ranks} ranks with {heads} heads: an all-to-all turns rows into columns"
    axes = style.axes(3.3, title)
    axes.axis("off")
    axes.set(xlim=(-2.3, 14.9), ylim=(heads + 0.9, -1.3), aspect="equal")
    words = (
        "1  some positions, all heads",
        "2  all positions, some heads:\nattention",
        "3  some positions, all heads",
    )
    for panel, said in enumerate(words):
        left = 5.3 * panel
        for row in range(heads):  # as many rows of positions as heads
            for column in range(heads):
                at = column if panel == 1 else row
                look = palette.ground(palette.colour(at * ranks // heads)) | {"edgecolor": "white"}
                style.box(axes, left + column, row, 1, 1, **look, linewidth=0.6)
        for rank in range(ranks):
            middle, side = (rank + 0.5) * heads / ranks, heads / ranks
            place = (middle - side / 2, 0, side, heads)
            place = place if panel == 1 else (0, middle - side / 2, heads, side)
            hue = palette.colour(rank)
            style.box(axes, left + place[0], *place[1:], facecolor="none", edgecolor=hue, lw=1.2)
            x, y = (left + middle, heads / 2) if panel == 1 else (left + heads / 2, middle)
            behind = {"facecolor": palette.ground(hue)["facecolor"], "lw": 0, "pad": 2}
            turned = {"rotation": 90 * (panel == 1), "bbox": behind}
            if panel == 0:  # beside its row: the cells of rank 0 say where they go
                x, turned = left - 0.15, {"ha": "right"}
            style.centred(axes, x, y, f"rank {rank}", weight="bold", **turned)
            if panel < 2:
                part = f"to {rank}" if panel == 0 else "from 0"
                style.centred(axes, left + middle, 0.5, part, fontsize=8)
        style.centred(axes, left + heads / 2, -0.7, said, fontsize=8.5)
        style.centred(axes, left + heads / 2, heads + 0.5, "heads", fontsize=8, color=style.GREY)
        if panel < 2:
            start, end = (left + heads + 0.1, heads / 2), (left + 5.2, heads / 2)
            axes.annotate("", end, start, arrowprops=ARROW)
            style.centred(axes, left + heads + 0.65, heads / 2 - 0.7, "all-to-\nall", fontsize=8)
    style.centred(axes, -1.9, heads / 2, "positions", fontsize=8, color=style.GREY, rotation=90)
    plt.show()


def costs(sent: Mapping[str, Mapping[int, float]], formulas: Mapping[str, Any]) -> None:
    """What each way sends over KV heads.

    Args:
        sent: way, then KV heads, to numbers per position and width.
        formulas: way to a function of the KV heads: the lines.
    """
    title = "What one call of attention sends (N = 4, H = 16)"
    axes = style.axes(3.5, title, "G, KV heads", "numbers sent, per position and width")
    fine = [1, 4, 16]  # straight lines: Ulysses bends where there are as many KV heads as ranks
    for way, points in sent.items():
        colour, mark, line = LOOKS[way]
        axes.plot(fine, [formulas[way](g) for g in fine], color=colour, linestyle=line, lw=2)
        look = {"color": colour, "marker": mark, "ms": 7, "linestyle": "", "label": way}
        axes.plot(list(points), list(points.values()), **look)
    axes.axvline(10 / 3, color=palette.NEUTRAL, linestyle=":", linewidth=1)
    axes.text(3.2, 330, "the ring\nsends less", ha="right", va="top", fontsize=8)
    axes.text(3.5, 330, "Ulysses\nsends less", ha="left", va="top", fontsize=8)
    axes.set_ylim(0, 340)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.3, 0.8))
    axes.set_xlim(0, 16.4)
    axes.set_xticks(list(sent["ring"]))
    axes.grid(alpha=0.25)
    plt.show()


def held(shares: Mapping[str, float], ranks: int) -> None:
    """The peak of the rank that holds most, for each way, beside one process and its 1/N.

    Args:
        shares: way to the share of one process's peak.
    """
    words = "peak memory of a rank / peak of one process, T = 1,024"
    axes = style.axes(2.3, f"What one call of attention holds (N = {ranks}, H = 16, G = 4)", words)
    for row, (way, share) in enumerate(shares.items()):
        axes.barh(row, share, height=0.6, color=LOOKS[way][0])
        axes.text(share + 0.01, row, f"{share:.2f}", va="center", fontsize=9)
    axes.set_yticks(range(len(shares)), list(shares))
    axes.set_ylim(len(shares) - 0.5, -1.1)
    axes.set_xlim(0, 1.1)
    for share, said in ((1 / ranks, "a quarter" if ranks == 4 else "1/N"), (1.0, "one process")):
        axes.axvline(share, color=palette.NEUTRAL, linestyle="--", linewidth=1)
        axes.text(share - 0.01, -0.72, said, ha="right", va="center", fontsize=8)
    plt.show()


def weights(valid: Sequence[int]) -> None:
    """What each rank's tokens weigh, if each rank divides by its own count, and by one.

    Args:
        valid: how many valid tokens each rank has.
    """
    title = "What does each token weigh? A slice is one valid token"
    every = style.panels(1, 2, 3.0, title, sharey=True)
    total, ranks = sum(valid), len(valid)
    for axes, own in zip(every, (True, False), strict=True):
        for rank, count in enumerate(valid):
            part = 1 / ranks if own else count / total  # of the gradient, for the whole rank
            if not count and own:
                look = {"facecolor": "none", "edgecolor": palette.NEUTRAL, "linestyle": "--"}
                style.box(axes, rank - 0.35, 0, 0.7, part, **look)
                style.centred(axes, rank, part / 2, "empty", fontsize=9)
            for token in range(count):
                look = palette.ground(palette.colour(rank))
                style.box(axes, rank - 0.35, token * part / count, 0.7, part / count, **look)
            each = f"{part / count:.0%} each" if count > 1 else f"{part:.0%}" if count else ""
            style.centred(axes, rank, part + 0.045, each, fontsize=9)
        words = "each rank divides by its own count" if own else "all divide by one count"
        axes.set_title(words, loc="left", fontsize=10)
        names = [f"rank {rank}\n{count} valid" for rank, count in enumerate(valid)]
        axes.set_xticks(range(ranks), names, fontsize=9)
        axes.set(xlim=(-0.6, ranks - 0.4), ylim=(0, 1))
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    every[0].set_ylabel("weight in the gradient")
    plt.show()


def grid(sequences: int) -> None:
    """Which sequences and positions each of four ranks has, and where targets count.

    Args:
        sequences: how many to draw for each group.
    """
    title = "Four ranks as dp x cp = 2 x 2: which sequences, which positions, which targets"
    axes = style.axes(3.0, title, "position in the sequence")
    height = sequences + 0.8  # of a group
    for rank in range(4):
        group, place = divmod(rank, 2)
        look, left, top = palette.ground(palette.colour(rank)), 32 * place, height * group
        look |= {} if place else {"hatch": "////"}
        for row in range(sequences):
            style.box(axes, left + 0.15, top + row, 31.7, 0.82, **look)
        words = f"rank {rank}: " + (
            "32 valid targets each" if place else "prompts, no valid target"
        )
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 2}
        style.centred(axes, left + 16, top + sequences / 2 - 0.09, words, bbox=behind)
    middles = [height * group + sequences / 2 - 0.09 for group in range(2)]
    axes.set_yticks(middles, [f"sequences of\ndp group {group}" for group in range(2)], fontsize=9)
    axes.set(xlim=(0, 64), ylim=(2 * height - 0.8, -0.75))
    axes.set_xticks((0, 16, 32, 48, 64))
    for place in range(2):
        look = {"fontsize": 9, "color": style.GREY}
        style.centred(axes, 32 * place + 16, -0.4, f"cp place {place}", **look)
    plt.show()


def holdings(ranks: int, kv_heads: int) -> None:
    """Which K and V rank 0 holds in each way: what it keeps for backward, and what passes by.

    Args:
        ranks: as many pieces of positions.
        kv_heads: the columns.
    """
    title = f"K and V that rank 0 holds, with {ranks} ranks and {kv_heads} KV heads"
    every = style.panels(1, 3, 3.7, title, sharey=True)
    cells = [(row, head) for row in range(ranks) for head in range(kv_heads)]
    own = {cell for cell in cells if cell[0] == 0}
    ways = {
        "ring": (own, {cell for cell in cells if cell[0] in (ranks - 2, ranks - 1)}),
        "all-gather": (own, set(cells) - own),
        "Ulysses": ({cell for cell in cells if cell[1] == 0}, own),
    }
    for axes, (way, (kept, passing)) in zip(every, ways.items(), strict=True):
        hue = LOOKS[way][0]
        for row, head in cells:
            look = {"facecolor": "none", "edgecolor": "#CCCCCC", "linewidth": 0.6}
            style.box(axes, head, row, 1, 1, **look)
        for row, head in passing - kept:
            look = {"facecolor": "none", "edgecolor": hue, "hatch": "////", "linewidth": 0.6}
            style.box(axes, head, row, 1, 1, **look)
        for row, head in kept:
            style.box(axes, head, row, 1, 1, facecolor=hue, edgecolor="white", linewidth=0.8)
        axes.set_title(f"{way}\nkeeps 1/{len(cells) // len(kept)}", fontsize=10)
        axes.set(xlim=(-0.1, kv_heads + 0.1), ylim=(ranks + 0.1, -0.1), xlabel="KV head")
        axes.set_xticks([head + 0.5 for head in range(kv_heads)], range(kv_heads))
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.tick_params(length=0)
    every[0].set_yticks(
        [row + 0.5 for row in range(ranks)], [f"rank {row}" for row in range(ranks)], fontsize=8
    )
    every[0].set_ylabel("whose positions")
    kept = Rectangle((0, 0), 0, 0, facecolor="#666666", label="kept for backward, in every layer")
    words = "held only while one layer computes"
    passing = Rectangle((0, 0), 0, 0, facecolor="none", ec="#666666", hatch="////", label=words)
    look = {"frameon": False, "fontsize": 9, "ncols": 2}
    every[0].figure.legend(handles=[kept, passing], loc="outside lower center", **look)
    plt.show()


# A step of a pass: the messages that travel in it, as words and numbers sent, and the blocks of
# scores that every rank computes meanwhile.
Step = tuple[list[tuple[str, float]], int]


def _passes(ranks: int, heads: int, kv_heads: int) -> dict[str, tuple[list[Step], list[Step]]]:
    """Forward and backward of each way."""
    kv, dkv = ("K, V", 2 * kv_heads), ("dk, dv", 2 * kv_heads)
    others = ranks - 1
    gathered, added = ((f"{others} x {words}", others * n) for words, n in (kv, dkv))
    share = (ranks - 1) / ranks  # of a rank's numbers that leave it in an all-to-all
    out, qkv = share * heads, share * (heads + 2 * kv_heads)
    forward = [([kv], 1)] * (ranks - 1) + [([], 1)]
    backward = [([kv], 1)] * 2 + [([dkv, kv], 1)] * (ranks - 3) + [([dkv], 1), ([dkv], 0)]
    attention = [([], ranks)]
    return {
        "ring": (forward, backward),
        "all-gather": (
            [([gathered], 0), *attention],
            [([gathered], 0), *attention, ([added], 0)],
        ),
        "Ulysses": (
            [([("q, k, v", qkv)], 0), *attention, ([("out", out)], 0)],
            [([("dout", out)], 0), *attention, ([("dq, dk, dv", qkv)], 0)],
        ),
    }


def over_time(ranks: int, heads: int, kv_heads: int, message: float) -> None:
    """What every rank computes and sends in the three ways, without a mask: a schema over time.

    Args:
        ranks: lanes in each panel; three or more.
        heads: of the queries; the ranks divide them.
        kv_heads: the ranks divide them.
        message: how long K and V of one rank travel; a block of scores in forward takes 1.
    """
    title = f"One call of attention on {ranks} ranks: what travels, and who computes meanwhile?"
    every = style.panels(3, 1, 6.6, title, sharex=True)
    block, turn = (1.0, 2.5), 6.5  # the time of a block in each pass; where backward begins
    for axes, (way, passes) in zip(every, _passes(ranks, heads, kv_heads).items(), strict=True):
        sent = alone = 0.0
        for backward, steps in enumerate(passes):
            at = turn * backward
            for step, (messages, blocks) in enumerate(steps):
                travels = at
                for _, numbers in messages:
                    length = numbers / (2 * kv_heads) * message
                    _travels(axes, ranks, (travels, length), hidden=bool(blocks))
                    sent, alone = sent + numbers, alone + numbers * (not blocks)
                    travels += length
                said = " + ".join(words for words, _ in messages)
                axes.text(at, -0.5, said, fontsize=8, va="bottom")
                for rank in range(ranks):
                    keys = [(rank - step) % ranks] if way == "ring" else range(ranks)
                    said = [f"K{owner}" for owner in keys]
                    said = said if way != "Ulysses" else [f"its {heads // ranks} heads, all keys"]
                    _computes(axes, rank, (at, blocks * block[backward]), said)
                at = max(at + blocks * block[backward], travels)
        said = f"{way}: sends {sent:.0f} numbers, {alone:.0f} of them while nobody computes"
        axes.set_title(said, loc="left", fontsize=10)
        axes.axvline(turn - 0.25, color=palette.NEUTRAL, linestyle="--", linewidth=1)
        axes.set(xlim=(-0.1, 20.1), ylim=(ranks - 0.4, -1.1), xticks=())
        axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)], fontsize=8)
        axes.tick_params(length=0)
    for x, words in ((turn - 0.4, "forward"), (20, "backward")):
        look = {"va": "bottom", "ha": "right", "fontsize": 9, "color": style.GREY}
        every[0].text(x, -0.5, words, **look)
    every[-1].set_xlabel("time, not measured")
    said = {"message beside computing": True, "message while nobody computes": False}
    handles = [
        Rectangle((0, 0), 0, 0, **_message(hidden), label=each) for each, hidden in said.items()
    ]
    keys = "K1: a rank computes with the keys of rank 1"
    handles.append(Rectangle((0, 0), 0, 0, **palette.ground(palette.colour(0)), label=keys))
    look = {"frameon": False, "fontsize": 8, "ncols": 3}
    every[0].figure.legend(handles=handles, loc="outside lower center", **look)
    plt.show()


def _message(hidden: bool) -> dict[str, Any]:
    """How a message is drawn: hatched if nobody computes beside it."""
    colour = palette.ACTIVITY["message"]
    look = {"facecolor": colour, "edgecolor": palette.outline(colour), "linewidth": 0.6}
    return look if hidden else look | {"hatch": "////"}


def _travels(axes: Axes, ranks: int, span: tuple[float, float], hidden: bool) -> None:
    """A message of every rank, under what the rank computes."""
    for rank in range(ranks):
        style.box(axes, span[0], rank + 0.14, span[1], 0.26, **_message(hidden))


def _computes(axes: Axes, rank: int, span: tuple[float, float], words: Sequence[str]) -> None:
    """A rank's boxes of equal width, side by side, one for each of the words."""
    wide = span[1] / len(words)
    for place, said in enumerate(words if wide else ()):
        left = span[0] + place * wide
        style.box(axes, left, rank - 0.4, wide, 0.5, **palette.ground(palette.colour(rank)))
        style.centred(axes, left + wide / 2, rank - 0.15, said, fontsize=8)


def merging(scores: Sequence[float], cut: int) -> None:
    """Probabilities of one query's keys: in piece A alone, in piece B alone, and merged.

    Args:
        scores: of the query with each key.
        cut: how many of the keys are piece A.
    """
    every = style.panels(1, 3, 2.7, "One query: the pieces' outputs, each times its share")
    s = torch.tensor(scores, dtype=torch.float64)
    keys, total = range(len(scores)), s.logsumexp(0)
    parts = {"A": range(cut), "B": range(cut, len(scores))}
    shares = {}
    for axes, (name, own), rank in zip(every, parts.items(), (0, 1), strict=False):
        lse = s[list(own)].logsumexp(0)
        shares[name] = (lse - total).exp().item()
        look = palette.ground(palette.colour(rank))
        color, edge = look["facecolor"], look["edgecolor"]
        axes.bar(list(own), (s[list(own)] - lse).exp(), color=color, edgecolor=edge)
        axes.set_title(rf"piece {name} alone gives $out_{name}$", loc="left", fontsize=9)
        every[2].bar(list(own), (s[list(own)] - total).exp(), color=color, edgecolor=edge)
    words = " + ".join(rf"{share:.2f} $out_{name}$" for name, share in shares.items())
    every[2].set_title(f"merged: {words}", loc="left", fontsize=9)
    for axes in every:
        axes.set(xlim=(-0.7, len(scores) - 0.3), ylim=(0, 0.6), xlabel="key")
        axes.set_xticks(list(keys))
        axes.set_ylabel("probability" if axes is every[0] else "")
    plt.show()
