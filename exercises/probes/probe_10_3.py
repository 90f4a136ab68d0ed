"""Calls the student's outer_gradient on random parameters, and judges its value and its bytes."""

from functools import partial

import torch
import torch.distributed as dist

from course_utils.checking.compare import count, expect_calls, judge, name_of
from course_utils.checking.findings import judging, observe, pair, random_values, where
from course_utils.worker import init

from exercise_10_3 import outer_gradient


def look(case: str, n: int, seed: int, dtype: torch.dtype, group, ranks: list[int]) -> None:
    """One call, of the ranks of a group."""
    here, me = where(case), dist.get_rank()
    before = random_values(seed + 99, n, dtype=dtype)
    after = {rank: random_values(seed + rank, n, dtype=dtype) for rank in ranks}
    mean = sum(after.values()) / len(ranks)
    arguments = (before.clone(), after[me].clone())
    found = observe(partial(outer_gradient, group=group), *arguments, names=("`before`", "`after`"))
    share = len(ranks) / dist.get_world_size()
    both = "Check direction and length: take the mean over the ranks, and SGD subtracts it."
    mistakes = [
        ("SGD subtracts the gradient. In which direction would yours go?", mean - before),
        (both, len(ranks) * (mean - before)),
        ("That is the sum over the ranks. What makes it a mean?", len(ranks) * (before - mean)),
        ("How many ranks are in the group?", (before - mean) * share),
        ("How many ranks are in the group?", before - mean * share),
        ("That is this rank's own. How does it learn about the others?", before - after[me]),
        ("That is where the ranks are now. How far have they moved?", mean),
        ("Only `after` needs the mean. Divide before you subtract.", before - len(ranks) * mean),
    ]
    with judging():
        hint = "`before` minus your result must be the mean of the ranks' parameters."
        judge(here, found, before - mean, mistakes, hint, dtype=dtype)
    with judging():
        allowed = [[["all_reduce", before.nbytes]], *[[]] * (len(ranks) == 1)]
        expect_calls(here, found["calls"], allowed, "One message of P values is enough.")


init()
everyone = list(range(dist.get_world_size()))
for number, n in enumerate((3, 7, 1, 2000)):
    for dtype in (torch.float32, torch.float64):
        look(f"{count(n, 'value')}, {name_of(dtype)}", n, 200 * number, dtype, None, everyone)
if mine := pair():
    look("a group of two", 5, 3000, torch.float32, *mine)
