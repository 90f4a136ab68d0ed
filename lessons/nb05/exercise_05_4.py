"""05.4: global gradient norm from shards."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, judge, named_calls
from course_utils.checking.findings import judging, observe, random_values, where

TITLE = "global gradient norm from shards"
PROVEN = (
    "1 to 4 ranks, with frozen parameters, ranks without any, and float16",
    "an infinity and a nan stay; the same on each rank, with one collective of one number",
)
RANKS = (2, 3, 4, 1)  # a rank alone may send nothing
LONELY = "Does every rank come to the collective, one without a gradient too?"
OURS = '''"""The global norm, from shards."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from course_utils.worker import device


def global_norm(shards: Sequence[torch.Tensor | None]) -> float:
    """The 2-norm of all values of all ranks' shards; the same on every rank."""
    total = torch.zeros((), dtype=torch.float64, device=device())
    for shard in shards:
        if shard is not None:
            total += shard.double().square().sum()  # in float16 a square of 300 overflows
    dist.all_reduce(total)
    return total.sqrt().item()
'''
HALF, SINGLE = torch.float16, torch.float32
CASES = {  # the shards of each rank: (about how large, count, dtype) or None
    "plain": [[(1.0, 4), (2.0, 1)], [(3.0, 2)], [(2.0, 3)], [(1.0, 1)]],
    "a frozen one": [[None, (2.0, 2)], [(2.0, 2), None], [None, (1.0, 1)], [(1.0, 2), None]],
    "float16": [[(300.0, 4, HALF)], [(400.0, 4, HALF)], [(300.0, 1, HALF)], [(500.0, 1, HALF)]],
    "large float16": [[(4e4, 4, HALF)], [(4e4, 4, HALF)], [(4e4, 4, HALF)], [(4e4, 4, HALF)]],
    "many": [[(1.0, 5000)], [(1.0, 5000)], [(1.0, 5000)], [(1.0, 5000)]],
    "an infinite gradient": [[(1.0, 3)], [None, (math.inf, 2)], [(2.0, 1)], [(1.0, 1)]],
    "a gradient of nan": [[(math.nan, 2), (1.0, 1)], [(1.0, 3)], [(2.0, 1)], [(1.0, 1)]],
    "an idle rank": [[(3.0, 1)], [], [(4.0, 1)], [None]],
}


def cases(global_norm: Callable) -> None:
    """The norm on each rank, and what was sent for it."""
    for name, every in CASES.items():
        look(global_norm, name, every)


def tensor(seed: int, size: float, count: int, dtype: torch.dtype = SINGLE) -> torch.Tensor:
    """Random values between `size` and half as much again, of both signs."""
    draw = random_values(seed, count, dtype=torch.float64)
    return (size * (1 + draw.abs().clamp(max=1) / 2) * draw.sign()).to(dtype)


def look(global_norm: Callable, name: str, every: list[list]) -> None:
    """One call on each rank."""
    rank, world, here = dist.get_rank(), dist.get_world_size(), where(name)
    made = [
        [each and tensor(17 * r + i, *each) for i, each in enumerate(shards)]
        for r, shards in enumerate(every[:world])
    ]
    given = [each if each is None else each.clone() for each in made[rank]]
    found = observe(global_norm, given, names=("a shard",))
    squares = [
        sum(x.double().square().sum().item() for x in shards if x is not None) for shards in made
    ]
    norms, norm = [math.sqrt(each) for each in squares], math.sqrt(sum(squares))
    with judging():
        differ = "Averaged, where the ranks hold different values: what is to be done with them?"
        mistakes = {
            "That is this rank's own. Who tells it of the others?": norms[rank],
            "Norms do not add up; their squares do.": sum(norms),
            "That is the square of the norm.": sum(squares),
            differ: math.sqrt(sum(squares) / world),
        }
        if not math.isfinite(norm):
            mistakes = {}  # a finite norm hides the one that is not
        question = hint(name, found["answer"], norm)
        judge(here, found, norm, mistakes, question, kinds=("float",), tolerance=1e-5)
    with judging():
        calls = found["calls"]
        if len(calls) not in ((1, 0) if world == 1 else (1,)) or sum(n for _, n in calls) > 8:
            said = f"{here} called {named_calls(calls)}, expected one collective of one number"
            raise Wrong(said, "Which one number of a rank is all that the others need to know?")


def hint(name: str, got: object, norm: float) -> str:
    """The question where no known mistake fits."""
    if not math.isfinite(norm):
        return "A gradient is not finite, so neither is the norm. Do not hide it."
    if isinstance(got, float) and not math.isfinite(got) and "float16" in name:
        return "In which dtype do you square? The square of 300 is beyond float16."
    return "Square, add up on each rank, add up over the ranks, take the root: in this order."


TOTAL = "dist.all_reduce(total)"
SQUARES = "shard.double().square().sum()"

WRONG = [
    (
        "a float16 norm that overflows",
        SQUARES,
        "(torch.linalg.vector_norm(shard) ** 2).double()",
        "beyond float16",
    ),
    ("whole numbers", ".double()", ".long()", "returned"),
    ("its own", TOTAL, "pass", "Who tells it of the others?"),
    (
        "norms added up",
        TOTAL,
        f"total.sqrt_()\n{TOTAL}",
        "total.sqrt()",
        "total",
        "their squares do",
    ),
    ("no root", ".sqrt()", "", "the square of the norm"),
    (
        "averaged",
        TOTAL,
        f"{TOTAL}\ntotal /= dist.get_world_size()",
        "where the ranks hold different values",
    ),
    ("squared in float16", ".double()", "", "The square of 300 is beyond float16"),
    (
        "a collective for each shard",
        f"if shard is not None:\n            total += {SQUARES}",
        f"one = torch.zeros_like(total) if shard is None else {SQUARES}\n"
        "dist.all_reduce(one)\n"
        "total += one",
        f"\n    {TOTAL}",
        "",
        "2 ranks",
    ),
    (
        "an idle rank stays away",
        TOTAL,
        f"if all(shard is None for shard in shards):\n    return 0.0\n{TOTAL}",
        "one without a gradient too?",
    ),
    ("a tensor", ".item()", "", "returned a Tensor, expected a float"),
    (
        "clipped on the way",
        TOTAL,
        f"{TOTAL}\nfor shard in shards:\n    if shard is not None:\n        shard /= 2",
        "changed a shard that it was given",
    ),
    (
        "everything sent to everyone",
        TOTAL,
        "every = [None] * dist.get_world_size()\n"
        "here = [shard.double().tolist() for shard in shards if shard is not None]\n"
        "dist.all_gather_object(every, here)\n"
        "squares = [x * x for rank in every for shard in rank for x in shard]\n"
        "total = torch.tensor(sum(squares), dtype=torch.float64)",
        "expected one collective of one number",
    ),
    (
        "what is not finite is left out",
        SQUARES,
        "shard.double().nan_to_num(0, 0, 0).square().sum()",
        "Do not hide it",
    ),
    ("only nan is left out", SQUARES, "shard.double().square().nansum()", "Do not hide it"),
    ("an infinity", "->", "lambda norm: float('inf')", "Square, add up on each rank"),
    ("a tensor alone", "->", "torch.tensor", "the form that was asked for: a float"),
]
RIGHT = [
    ("numpy's numbers", "->", "numpys"),
    (
        "a rank alone sends nothing",
        TOTAL,
        f"if dist.get_world_size() > 1:\n    {TOTAL}",
    ),
    (
        "a number of NumPy",
        "return total.sqrt().item()",
        "import numpy\nreturn numpy.sqrt(numpy.float64(total.item()))",
    ),
]
