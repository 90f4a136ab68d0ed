"""Notebook 14, all dimensions: groups of a mesh, a type rule, memory of a rank, three bugs."""

from collections.abc import Callable, Iterable, Mapping
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, expect
from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import lists_of_ints

MESHES = (
    {"dp": 3, "tp": 2},
    {"dp": 2, "tp": 2},
    {"dp": 2, "pp": 2, "cp": 2, "tp": 2},
    {"dp": 2, "pp": 3, "cp": 1, "tp": 4},
    {"pp": 1, "tp": 1},
)


@exercise("14.1", "the groups of a mesh")
def check_14_1(groups_along: Callable) -> list[str]:
    """The groups along one axis and along several, for meshes of two to four axes."""
    for sizes in MESHES:
        for count in (1, 2):
            for axes in permutations(sizes, count):
                _check_groups(groups_along, sizes, axes)
    return [
        "meshes of 1 to 24 ranks, axes of size 1 and 3 too, along one axis and along two:",
        "every rank is in one group, and the order inside a group is that of the axis",
    ]


def _groups(sizes: Mapping[str, int], axes: Iterable[str], reverse: bool = False) -> list:
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


def _check_groups(groups_along: Callable, sizes: dict[str, int], axes: tuple[str, ...]) -> None:
    call = f"groups_along({sizes}, {', '.join(map(repr, axes))})"
    answer = called(call, groups_along, sizes, *axes)
    if (found := lists_of_ints(answer)) is None:
        raise Wrong(f"{call} returned {answer!r}", "Return a list of lists of ranks (ints).")
    got = sorted(found)
    expected = _groups(sizes, axes)
    if got == expected:
        return
    others = [name for name in sizes if name not in axes]
    ranks, wanted = sorted(rank for group in got for rank in group), sum(map(len, expected))
    if got == _groups(sizes, [name for name in sizes if name in axes]):
        hint = "The axes come in the order of the call: the last one given runs fastest."
    elif got == _groups(sizes, axes, reverse=True):
        hint = "Which axis is the inner one? On the last axis neighbours have neighbouring numbers."
    elif got == _groups(sizes, others):
        hint = "Those are the groups along the other axes. Who differs only in this coordinate?"
    elif ranks != list(range(wanted)):
        hint = f"There are {wanted} ranks, and each of them is in one group."
    elif sorted(map(sorted, got)) == sorted(map(sorted, expected)):
        hint = "The right ranks in another order. Rank 0 of a group has coordinate 0 on its axis."
    else:
        hint = "The ranks of a group agree in every other coordinate. Which of yours do not?"
    raise Wrong(f"{call} returned {got}, expected {expected}", hint)


@exercise("14.2", "the layout of a matrix product", file="exercise_14_2.py")
def check_14_2() -> list[str]:
    """The rule for all pairs of five layouts, each judged by values on 2 and 3 pretended ranks."""
    probe("probe_14_2.py", 1)
    return [
        "25 pairs of layouts; where values decide, by the product of random integers on 2 and 3",
        "ranks: what you accept is what one process computes, and nothing sound is refused",
    ]


@exercise("14.3", "the memory of one rank")
def check_14_3(rank_bytes: Callable) -> list[str]:
    """Three stages of ZeRO, every pipeline stage, few and many micro-batches, recomputation."""
    shapes = ((1, 1, 1), (4, 1, 1), (2, 1, 3), (2, 4, 1), (1, 3, 2))
    for (dp, pp, cp), zero in product(shapes, (0, 1, 3)):
        for recompute, m in product((False, True), (1, 2, 8)):
            for stage in range(pp):
                cut = SimpleNamespace(dp=dp, pp=pp, cp=cp, tp=1, zero=zero, recompute=recompute)
                _check_bytes(rank_bytes, cut, stage, m)
    return [
        "ZeRO 0, 1 and 3 over dp x cp, 1 to 4 pipeline stages, 1 to 8 micro-batches,",
        "with and without recomputation: the state and the activations of the fullest moment",
    ]


def _memory(cut: Any, stage: int, m: int, **wrong: Any) -> float:
    """What a rank holds; `wrong` replaces one of the terms."""
    n = cut.dp * cut.cp
    use = {"n": n, "alive": min(m, cut.pp - stage), "layers": 5, "one": 1, "input": 30} | wrong
    n = use["n"]
    state = wrong.get("state", {0: 16, 1: 4 + 12 / n, 3: 16 / n}[cut.zero])
    kept = use["alive"] * use["layers"] * (use["input"] if cut.recompute else 700)
    return 1000 * state + kept + use["one"] * 700 * cut.recompute


def _check_bytes(rank_bytes: Callable, cut: Any, stage: int, m: int) -> None:
    parameters, layers, layer_bytes, input_bytes = 1000, 5, 700, 30
    how = f"dp={cut.dp} pp={cut.pp} cp={cut.cp} zero={cut.zero} recompute={cut.recompute}"
    call = f"rank_bytes(1000, 5, 700, 30, cut: {how}, stage={stage}, microbatches={m})"
    answer = called(call, rank_bytes, parameters, layers, layer_bytes, input_bytes, cut, stage, m)
    behind, n = cut.pp - stage, cut.dp * cut.cp
    two = {0: 16, 1: 2 + 14 / n, 3: 4 + 12 / n}[cut.zero]
    mistakes = {
        "How many micro-batches are between F and B here, at most? Not all of them.": _memory(
            cut, stage, m, alive=m
        ),
        "There are fewer micro-batches than stages behind this one.": _memory(
            cut, stage, m, alive=behind
        ),
        "The last stage keeps one micro-batch, the first keeps p.": _memory(
            cut, stage, m, alive=min(m, stage + 1)
        ),
        "The micro-batch that the stage is working on counts, too.": _memory(
            cut, stage, m, alive=min(m, behind - 1)
        ),
        "The state is shared out over dp and cp: both hold the same parameters.": _memory(
            cut, stage, m, n=cut.dp
        ),
        "What does this stage of ZeRO share out, and what stays whole?": _memory(
            cut, stage, m, state=16
        ),
        "Stage 1 shares out the optimizer's 12 bytes, stage 3 all 16.": _memory(
            cut, stage, m, state=two
        ),
        "While a layer runs again, it needs all that it keeps.": _memory(cut, stage, m, one=0),
        "With recomputation each layer keeps only its input.": _memory(
            cut, stage, m, input=700, one=0
        ),
    }
    hint = "The state: bytes per parameter times parameters. Then layers times micro-batches alive."
    right = _memory(cut, stage, m)
    expect(f"{call} returned", answer, right, mistakes, hint, tolerance=1e-6)


@exercise("14.4", "three bugs to find with the audit", file="exercise_14_4.py")
def check_14_4() -> list[str]:
    """The four gradients on every mesh of dp x tp ranks, beside autograd in one process."""
    probe_each("probe_14_4.py", (6, 4, 2))
    return [
        "every mesh dp x tp of 2, 4 and 6 ranks, and 10 rows that do not always divide:",
        "all four gradients are those of one process, and the weights stay as they were",
    ]
