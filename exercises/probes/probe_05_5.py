"""Calls the student's reduce_gradient with uneven rows and in several dtypes, and counts."""

import math

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, judge, named_calls, shape
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_05_5 import reduce_gradient

CASES = {  # rows of each rank, how large its values are, dtype
    "equal rows": ([4, 4, 4, 4], 1.0, torch.float32),
    "uneven rows": ([1, 5, 2, 8], 1.0, torch.float32),
    "many rows": ([2049, 4099, 1, 3], 1.0, torch.float64),
    "no rows on one rank": ([5, 0, 2, 1], 1.0, torch.float32),
    "half, uneven rows": ([1, 5, 2, 8], 1.0, torch.float16),
    "large values": ([4, 4, 4, 4], 20_000.0, torch.float16),
}
SIZE = 5  # of a shard; more than the 8 bytes of a number, in float16 too


def question(got: object, right: torch.Tensor, dtype: torch.dtype) -> str:
    """The question where no known mistake fits."""
    if shape(got) != (len(right),):
        return "A shard is an N-th of the gradient. How long is yours?"
    if any(not math.isfinite(each) for each in got):
        if dtype != torch.float16:
            return "An infinity. Which number do you divide by, and can it be 0?"
        return "Beyond 65504 a float16 is infinite. When do you divide: before the sum or after?"
    times = torch.tensor(got).double() / right.cpu()
    if times.std() < 1e-3 * abs(times.mean()):
        return f"Yours is {times.mean():.3g} times that. By which number do you divide?"
    return "Which piece of the flat gradient is this rank's? And each rank's weight in the mean?"


init()
rank, world = dist.get_rank(), dist.get_world_size()
own = slice(SIZE * rank, SIZE * (rank + 1))
for number, (case, (rows, scale, dtype)) in enumerate(CASES.items()):
    every = [
        scale * (1 + random_values(10 * number + r, SIZE * world).abs()).clamp(max=3).to(dtype)
        for r in range(world)
    ]
    found = observe(reduce_gradient, every[rank].clone(), rows[rank], names=("the gradient",))
    total = sum(rows[:world])
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
    with judging():
        large = [call for call in found["calls"] if call[1] > 8]
        wanted = [["reduce_scatter", every[rank].nbytes]]
        if large not in ([wanted, []] if world == 1 else [wanted]) or len(found["calls"]) > 2:
            said = f"{here} called {named_calls(found['calls'])}; expected {named_calls(wanted)}"
            hint = "A shard is all that this rank needs. Which collective gives it just that?"
            if [name for name, _ in large] == ["reduce_scatter"]:
                hint = "That is the right collective. In which dtype does the gradient travel?"
            raise Wrong(f"{said}, and at most one collective of a number", hint)
