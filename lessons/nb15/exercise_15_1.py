"""15.1: the groups of a mesh."""

from collections.abc import Callable, Iterable, Mapping
from itertools import permutations, product

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.values import lists_of_ints

TITLE = "the groups of a mesh"
PROVEN = (
    "meshes of 1 to 24 ranks, axes of size 1 and 3 too, along one axis and along several:",
    "every rank is in one group, and the order inside a group is that of the axis",
)
OURS = '''"""A mesh: ranks in a grid with the axes dp, pp, cp and tp."""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import torch
import torch.distributed as dist

AXES = ("dp", "pp", "cp", "tp")


class Coordinate(NamedTuple):
    """A rank's place on each axis, from 0."""

    dp: int
    pp: int
    cp: int
    tp: int


class Mesh:
    """dp x pp x cp x tp ranks; neighbours on the last axis have neighbouring numbers.

    All ranks make the mesh together. Without a process group it still answers `groups` and
    `coordinate`, so you can plan for machines that you don't have.

    Raises:
        ValueError: the sizes do not multiply to the number of ranks.
    """

    def __init__(self, dp: int = 1, pp: int = 1, cp: int = 1, tp: int = 1) -> None:
        self.sizes = dict(zip(AXES, (dp, pp, cp, tp), strict=True))
        if min(self.sizes.values()) < 1:
            raise ValueError(f"every axis needs at least one rank: {self}")
        self.ranks = torch.arange(dp * pp * cp * tp).view(dp, pp, cp, tp)
        self.places = [Coordinate(*each) for each in product(*map(range, self.ranks.shape))]
        self.made: dict[tuple[int, ...], dist.ProcessGroup] = {}
        if not dist.is_initialized():
            return
        if (world := dist.get_world_size()) != self.ranks.numel():
            raise ValueError(f"{self} has {self.ranks.numel()} places for {world} ranks")
        for axes in (*((axis,) for axis in AXES), ("dp", "cp")):
            for members in map(tuple, self.groups(*axes)):  # every rank makes every group
                if members not in self.made:
                    self.made[members] = dist.new_group(list(members))

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{axis}={size}' for axis, size in self.sizes.items())})"

    def groups(self, *axes: str) -> list[list[int]]:
        """The ranks of every group along one axis, or along several axes taken together."""
        return groups_along(self.sizes, *axes)

    def group(self, *axes: str) -> dist.ProcessGroup:
        """The process group along an axis that this rank is in; ("dp", "cp") are one group too."""
        me = dist.get_rank()
        return self.made[next(tuple(each) for each in self.groups(*axes) if me in each)]

    def coordinate(self, rank: int | None = None) -> Coordinate:
        """Where a rank is on each axis; None for this rank."""
        return self.places[dist.get_rank() if rank is None else rank]


def groups_along(sizes: Mapping[str, int], *axes: str) -> list[list[int]]:
    """All groups along one axis, or along several axes taken together.

    Args:
        sizes: the ranks on each axis, in order; on the last axis neighbours are one apart.
        axes: the axes along which the ranks of a group differ.
    """
    names = list(sizes)
    ranks = torch.arange(torch.Size(sizes.values()).numel()).view(*sizes.values())
    along = [names.index(axis) for axis in axes]
    rest = [place for place in range(len(names)) if place not in along]
    size = torch.Size([sizes[axis] for axis in axes]).numel()
    return ranks.permute(*rest, *along).reshape(-1, size).tolist()
'''
AXES = ("dp", "pp", "cp", "tp")  # in the order of the meshes that come first
KNOWN_AXES = "The axes' names, and their order, are those of `sizes`. Do you take them from there?"
MESHES = (
    {"dp": 3, "tp": 2},
    {"dp": 2, "tp": 2},
    {"dp": 2, "pp": 2, "cp": 2, "tp": 2},
    {"dp": 2, "pp": 3, "cp": 1, "tp": 4},
    {"pp": 1, "tp": 1},
    {"tp": 2, "pp": 3, "dp": 2},
    {"node": 3, "gpu": 2},
)


def cases(groups_along: Callable) -> None:
    """The groups along one axis and along several, for meshes of two to four axes."""
    for sizes in MESHES:
        for count in (1, 2, 3):
            for axes in permutations(sizes, count):
                look(groups_along, sizes, axes)


def look(groups_along: Callable, sizes: dict[str, int], axes: tuple[str, ...]) -> None:
    """The groups of one mesh along some of its axes."""
    call = f"groups_along({sizes}, {', '.join(map(repr, axes))})"
    hint = KNOWN_AXES if list(sizes) != [name for name in AXES if name in sizes] else ""
    answer = called(call, groups_along, sizes, *axes, hint=hint)
    if (found := lists_of_ints(answer)) is None:
        raise Wrong(f"{call} returned {answer!r}", "Return a list of lists of ranks (ints).")
    got = sorted(found)
    expected = groups_of(sizes, axes)
    if got == expected:
        return
    others = [name for name in sizes if name not in axes]
    ranks, wanted = sorted(rank for group in got for rank in group), sum(map(len, expected))
    if list(sizes) != [name for name in AXES if name in sizes]:
        hint = KNOWN_AXES
    elif got == groups_of(sizes, [name for name in sizes if name in axes]):
        hint = "The axes come in the order of the call: the last one given runs fastest."
    elif got == groups_of(sizes, axes, reverse=True):
        hint = "Which axis is the inner one? On the last axis neighbours have neighbouring numbers."
    elif got == groups_of(sizes, others):
        hint = "Those are the groups along the other axes. Who differs only in this coordinate?"
    elif ranks != list(range(wanted)):
        hint = f"There are {wanted} ranks, and each of them is in one group."
    elif sorted(map(sorted, got)) == sorted(map(sorted, expected)):
        hint = "The right ranks in another order. Rank 0 of a group has coordinate 0 on its axis."
    else:
        hint = "The ranks of a group agree in every other coordinate. Which of yours do not?"
    raise Wrong(f"{call} returned {got}, expected {expected}", hint)


def groups_of(sizes: Mapping[str, int], axes: Iterable[str], reverse: bool = False) -> list:
    """The groups, each in the order of the axes; with `reverse` the first axis is the inner one."""
    names, found = list(sizes), {}
    numbered = list(reversed(names)) if reverse else names
    for place in product(*(range(sizes[name]) for name in names)):
        at, rank = dict(zip(names, place, strict=True)), 0
        for name in numbered:
            rank = rank * sizes[name] + at[name]
        others = tuple(at[name] for name in names if name not in axes)
        found.setdefault(others, []).append((tuple(at[name] for name in axes), rank))
    return sorted([rank for _, rank in sorted(members)] for members in found.values())


GRID = ".view(*sizes.values())"
GROUPS = "ranks.permute(*rest, *along).reshape(-1, size)"

WRONG = [
    (
        "dp is the inner axis",
        GRID,
        ".view(*list(sizes.values())[::-1]).permute(*range(len(names))[::-1])",
        "Which axis is the inner one?",
    ),
    (
        "the other axes",
        GROUPS,
        "ranks.permute(*along, *rest).reshape(size, -1)",
        "Who differs only in this coordinate?",
    ),
    (
        "neighbours, whatever the axis",
        GROUPS,
        "ranks.reshape(-1, size)",
        "Which axis is the inner one?",
    ),
    (
        "only the first of two axes",
        "names = list(sizes)",
        "names, axes = list(sizes), axes[:1]",
        "agree in every other coordinate",
    ),
    (
        "in the mesh's order",
        "names = list(sizes)",
        "names, axes = list(sizes), [each for each in sizes if each in axes]",
        "the last one given runs fastest",
    ),
    ("only one group", GROUPS, f"{GROUPS}[:1]", "each of them is in one group"),
    ("the last rank first", GROUPS, f"{GROUPS}.flip(1)", "in another order"),
    ("counted from 1", GRID, f"{GRID} + 1", "each of them is in one group"),
    ("a number", f"{GROUPS}.tolist()", "7", "list of lists of ranks"),
    (
        "the axes in an order of its own",
        "names = list(sizes)",
        'names = [each for each in ("dp", "pp", "cp", "tp") if each in sizes]\n'
        "sizes = {name: sizes[name] for name in names}",
        "Do you take them from there?",
    ),
    (
        "only the names of this course",
        "names = list(sizes)",
        'names = [each for each in sizes if each in ("dp", "pp", "cp", "tp")]\n'
        "sizes = {name: sizes[name] for name in names}",
        "Do you take them from there?",
    ),
    ("two axes at most", "names = list(sizes)", "names, axes = list(sizes), axes[:2]", "agree in"),
    ("0.4 too much", "->", "lambda groups: leaves(groups, lambda n: n + 0.4)", "of ranks (ints)"),
    ("infinite", "->", "lambda groups: leaves(groups, lambda n: float('inf'))", "ranks (ints)"),
    ("a flat list", "->", "lambda groups: sum(groups, [])", "list of lists of ranks"),
]
RIGHT = [
    ("by permuting", GROUPS, "ranks.permute(*rest, *along).flatten().view(-1, size)"),
    ("as tensors", f"{GROUPS}.tolist()", f"list({GROUPS})"),
    (
        "as tuples",
        f"{GROUPS}.tolist()",
        f"[tuple(group) for group in {GROUPS}.tolist()]",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a generator", "->", "lambda groups: (iter(group) for group in groups)"),
    ("an array", "->", "lambda groups: numpy.array(groups)"),
    ("the groups in another order", "->", "lambda groups: groups[::-1]"),
]
