"""05.5: reduce-scatter with the right mean."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, expect_new, judge, named_calls, shape
from course_utils.checking.findings import judging, observe, random_values, where

TITLE = "reduce-scatter with the right mean"
PROVEN = (
    "1 to 4 ranks with equal, uneven and no rows, and sums beyond float16's range",
    "one reduce-scatter of the gradient's bytes, and the gradient left as it was",
)
RANKS = (2, 3, 4, 1)  # a rank alone may send nothing
LONELY = "Does every rank come to every collective, one without rows too?"
OURS = '''"""Reduce-scatter of gradients, with the right mean."""

import torch
import torch.distributed as dist


def reduce_gradient(gradient: torch.Tensor, rows: int) -> torch.Tensor:
    """This rank's shard (n / N,) of the mean over all rows, of the ranks' `gradient`s (n,)."""
    total = torch.tensor(rows, device=gradient.device)
    dist.all_reduce(total)
    weighted = gradient * (rows / total.item())  # before the sum, which might overflow
    shard = gradient.new_empty(len(gradient) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, weighted)
    return shard
'''
CASES = {  # rows of each rank, how large its values are, dtype
    "equal rows": ([4, 4, 4, 4], 1.0, torch.float32),
    "uneven rows": ([1, 5, 2, 8], 1.0, torch.float32),
    "many rows": ([2049, 4099, 1, 3], 1.0, torch.float64),
    "half, uneven rows": ([1, 5, 2, 8], 1.0, torch.float16),
    "large values": ([4, 4, 4, 4], 20_000.0, torch.float16),
    "half, very many rows": ([40_000] * 4, 1.0, torch.float16),
    "one rank has diverged": ([2, 5, 1, 3], 1.0, torch.float32),
    "no rows on one rank": ([5, 0, 2, 1], 1.0, torch.float32),  # the last: who skips, leaves
}
SIZE = 5  # of a shard; more than the 8 bytes of a number, in float16 too


def cases(reduce_gradient: Callable) -> None:
    """The shard on each rank, with equal and uneven rows, and in float16."""
    for number, case in enumerate(CASES):
        look(reduce_gradient, case, 10 * number)


def question(got: object, right: torch.Tensor, dtype: torch.dtype) -> str:
    """The question where no known mistake fits."""
    if shape(got) != (len(right),):
        return "A shard is an N-th of the gradient. How long is yours?"
    if not right.isfinite().all():
        return "A gradient is infinite, so the mean is. Do not hide it."
    if dtype == torch.float16 and not any(got):
        return "All 0. In which dtype do you count the rows? Float16 ends at 65504."
    if any(not math.isfinite(each) for each in got):
        if dtype != torch.float16:
            return "An infinity. Which number do you divide by, and can it be 0?"
        return "Beyond 65504 a float16 is infinite. When do you divide: before the sum or after?"
    times = torch.tensor(got).double() / right.cpu()
    if times.std() < 1e-3 * abs(times.mean()):
        return f"Yours is {times.mean():.3g} times that. By which number do you divide?"
    return "Which piece of the flat gradient is this rank's? And each rank's weight in the mean?"


def look(reduce_gradient: Callable, case: str, seed: int) -> None:
    """One call on each rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    rows, scale, dtype = CASES[case]
    every = [
        scale * (1 + random_values(seed + r, SIZE * world).abs()).clamp(max=3).to(dtype)
        for r in range(world)
    ]
    if case == "one rank has diverged":
        every[-1][::2] = torch.inf
    found = observe(reduce_gradient, every[rank].clone(), rows[rank], names=("the gradient",))
    total, own = sum(rows[:world]), slice(SIZE * rank, SIZE * (rank + 1))
    doubles = [each.double()[own] for each in every]
    right = sum(each * n / total for each, n in zip(doubles, rows, strict=False))
    counts = ", ".join(map(str, rows[:world]))
    here = where(f"{counts} rows, {case}")
    with judging():
        means = "That is a mean of the ranks' means. Whose rows weigh too much in it?"
        known = [
            (means, sum(doubles) / world),
            ("That is the sum over the ranks. What makes it a mean?", sum(doubles)),
            ("That is this rank's own. Who tells it of the others?", doubles[rank]),
        ]
        judge(here, found, right, known, question(found["answer"], right, dtype), dtype=dtype)
        expect_new(here, found)
    with judging():
        large = [call for call in found["calls"] if call[1] > 8]
        wanted = [["reduce_scatter", every[rank].nbytes]]
        if large not in ([wanted, []] if world == 1 else [wanted]) or len(found["calls"]) > 2:
            said = f"{here} called {named_calls(found['calls'])}; expected {named_calls(wanted)}"
            hint = "A shard is all that this rank needs. Which collective gives it just that?"
            if large == wanted:
                hint = "One number more is enough. Which of the small collectives can go?"
            elif [name for name, _ in large] == ["reduce_scatter"]:
                hint = "That is the right collective. In which dtype does the gradient travel?"
            raise Wrong(f"{said}, and at most one collective of a number", hint)


TOTAL = "dist.all_reduce(total)"
WEIGHTED = "gradient * (rows / total.item())"
SCATTER = "dist.reduce_scatter_tensor(shard, weighted)"
PART = "chunk(dist.get_world_size())[dist.get_rank()]"

WRONG = [
    (
        "rows counted in the gradient's dtype",
        "device=gradient.device",
        "device=gradient.device, dtype=gradient.dtype",
        "In which dtype do you count the rows?",
    ),
    (
        "a collective more",
        TOTAL,
        f"{TOTAL}\nranks = torch.ones((), device=gradient.device)\ndist.all_reduce(ranks)",
        "Which of the small collectives can go?",
    ),
    (
        "what a rank alone was given",
        TOTAL,
        f"if dist.get_world_size() == 1:\n    return gradient\n{TOTAL}",
        "returned memory that it was given",
    ),
    (
        "one buffer for all calls",
        "shard = gradient.new_empty(len(gradient) // dist.get_world_size())",
        "shard = gradient.new_empty(len(gradient) // dist.get_world_size())\n"
        "shard = reduce_gradient.__dict__.setdefault(str(shard.dtype), shard)",
        "one buffer for all calls",
    ),
    ("nan as 0", "return shard", "return shard.nan_to_num(0, 0, 0)", "Do not hide it"),
    ("divided by 0", "->", "lambda shard: shard / 0", "Which number do you divide by"),
    (
        "sent as half",
        SCATTER,
        "shard = shard.half()\ndist.reduce_scatter_tensor(shard, weighted.half())",
        "return shard",
        "return shard.to(gradient)",
        "returned",
    ),
    (
        "rows counted in float16",
        TOTAL,
        f"total = total.half()\n{TOTAL}",
        "many rows: rank 0 returned",
    ),
    (
        "a rank without rows stays away",
        TOTAL,
        f"if rows == 0:\n    return torch.zeros_like(gradient.{PART})\n{TOTAL}",
        "one without rows too?",
    ),
    ("the sum", WEIGHTED, "gradient.clone()", "What makes it a mean?"),
    (
        "a mean of means",
        WEIGHTED,
        "gradient / dist.get_world_size()",
        "Whose rows weigh too much",
    ),
    (
        "divided after the sum",
        WEIGHTED,
        "gradient * rows",
        "return shard",
        "return shard / total.item()",
        "before the sum or after?",
    ),
    ("not sent", SCATTER, f"shard = gradient.{PART}.clone()", "Who tells it of the others?"),
    (
        "an all-reduce, then a slice",
        SCATTER,
        f"dist.all_reduce(weighted)\nshard = weighted.{PART}",
        "Which collective gives it just that?",
    ),
    (
        "in place",
        f"weighted = {WEIGHTED}",
        "gradient *= rows / total.item()",
        SCATTER,
        "dist.reduce_scatter_tensor(shard, gradient)",
        "changed the gradient that it was given",
    ),
    (
        "in double precision",
        WEIGHTED,
        "gradient.double() * (rows / total.item())",
        SCATTER,
        f"shard = shard.double()\n{SCATTER}",
        "returned float64, expected float32",
    ),
    (
        "in double precision on the way",
        WEIGHTED,
        "gradient.double() * (rows / total.item())",
        SCATTER,
        f"shard = shard.double()\n{SCATTER}\nshard = shard.to(gradient.dtype)",
        "In which dtype does the gradient travel?",
    ),
    (
        "divided twice",
        SCATTER,
        "dist.reduce_scatter_tensor(shard, weighted / dist.get_world_size())",
        "By which number do you divide?",
    ),
    ("the whole", SCATTER, "shard = weighted\ndist.all_reduce(shard)", "How long is yours?"),
]
RIGHT = [
    (
        "a rank alone sends nothing",
        TOTAL,
        f"if dist.get_world_size() == 1:\n    return gradient.clone()\n{TOTAL}",
    )
]
