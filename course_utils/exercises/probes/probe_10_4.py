"""Calls the student's outer_gradient on random parameters, and judges its value and its bytes."""

from functools import partial

import torch
import torch.distributed as dist

from course_utils.exercises.compare import expect_calls, judge
from course_utils.exercises.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_10_4 import outer_gradient


def look(case: str, n: int, seed: int, dtype: torch.dtype, group, ranks: list[int]) -> None:
    """One call, of the ranks of a group."""
    here, me = where(case), dist.get_rank()
    before = random_values(seed + 99, n, dtype=dtype)
    after = {rank: random_values(seed + rank, n, dtype=dtype) for rank in ranks}
    mean = sum(after.values()) / len(ranks)
    arguments = (before.clone(), after[me].clone())
    function = partial(outer_gradient, group=group) if group else outer_gradient
    found = observe(function, *arguments, names=("`before`", "`after`"))
    mistakes = [
        ("SGD subtracts the gradient. In which direction would yours go?", mean - before),
        (
            "Check direction and length: take the mean over the ranks, and SGD subtracts it.",
            len(ranks) * (mean - before),
        ),
        ("That is the sum over the ranks. What makes it a mean?", len(ranks) * (before - mean)),
        ("That is this rank's own. How does it learn about the others?", before - after[me]),
        ("That is where the ranks are now. How far have they moved?", mean),
        (
            "Only `after` needs the mean. Divide before you subtract.",
            before - len(ranks) * mean,
        ),
    ]
    with judging():
        judge(
            here,
            found,
            (before - mean).tolist(),
            dtype=str(dtype).removeprefix("torch."),
            mistakes=[(q, v.tolist()) for q, v in mistakes],
            otherwise="`before` minus your result must be the mean of the ranks' parameters.",
        )
    with judging():
        wanted = [["all_reduce", before.nbytes]]
        hint = "One message of P values is enough."
        expect_calls(here, found["calls"], [wanted, *([[]] if len(ranks) == 1 else [])], hint)


init()
everyone = list(range(dist.get_world_size()))
pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])] if len(everyone) == 4 else []
for number, n in enumerate((3, 7, 1, 2000)):
    for dtype in (torch.float32, torch.float64):
        case = f"{n} values, {dtype}".replace("torch.", "").replace("1 values", "1 value")
        look(case, n, 200 * number, dtype, None, everyone)
if pairs:
    parity = dist.get_rank() % 2
    look("a group of two", 5, 3000, torch.float32, pairs[parity], everyone[parity::2])
