"""Calls the student's Gather on shards of several sizes and dtypes, and counts."""

import torch
import torch.distributed as dist

from course_utils.checking.compare import expect, expect_calls, judge, name_of
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import device, init

from exercise_05_2 import Gather


def reduced(shard: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient that the shard gets from one of the whole."""
    leaf = shard.clone().requires_grad_()
    Gather.apply(leaf).backward(gradient)
    return leaf.grad


def look(case: str, size: int, dtype: torch.dtype, seed: int, expanded: bool) -> None:
    """One shard forward, and one gradient backward."""
    here = where(case)
    shards = [random_values(seed + r, size, dtype=dtype) for r in range(world)]
    gradients = [random_values(seed + 50 + r, size * world, dtype=dtype) for r in range(world)]
    if expanded:  # as `whole.sum().backward()` gives it: one number, many times
        gradients = [each[:1].expand(size * world) for each in gradients]
    mean = sum(gradients) / world
    own = slice(size * rank, size * (rank + 1))
    gather = ["all_gather", shards[rank].nbytes]
    with judging():
        found = observe(Gather.apply, shards[rank].clone(), names=("the shard",))
        hint = "All ranks' shards, one after another in the order of the ranks."
        judge(f"{here} forward", found, torch.cat(shards), (), hint, dtype=dtype)
        hint = "Which collective gives everybody all shards, and nothing else?"
        allowed = [[gather], *[[]] * (world == 1)]
        expect_calls(f"{here} forward", found["calls"], allowed, hint)
    with judging():
        names = ("the shard", "the gradient")
        found = observe(reduced, shards[rank], gradients[rank], names=names)
        times = f"Yours is {world} times too large, and there are {world} ranks. Sum or average?"
        mistakes = [
            (times, (mean * world)[own]),
            ("That is this rank's own. Who tells it of the others?", gradients[rank][own]),
            ("That is this rank's own, divided. Who adds up?", gradients[rank][own] / world),
            ("Divided twice? Count the divisions.", (mean / world)[own]),
            ("That is the piece of another rank.", mean.roll(-size)[own]),
        ]
        hint = "Average all ranks' gradients. Which piece belongs to this rank?"
        what = f"{here}: the gradient of its shard"
        judge(what, found, mean[own], mistakes, hint, dtype=dtype, verb="is")
        reduce = ["reduce_scatter", mean.nbytes]
        one = [[gather], [reduce], []] if world == 1 else []
        hint = "The whole average is more than this rank needs. Which collective gives its part?"
        expect_calls(f"{here} backward", found["calls"], [[gather, reduce], *one], hint)


def two_shards() -> None:
    """Two shards forward before either goes backward."""
    leaves = [torch.ones(size, device=device(), requires_grad=True) for size in (2, 3)]
    wholes = [Gather.apply(leaf) for leaf in leaves]
    for whole in wholes:
        whole.backward(torch.ones_like(whole))
    with judging():
        for leaf in leaves:
            here = where("two shards forward, then both backward")
            hint = "What does yours remember of a call? It belongs in `ctx`, not in the class."
            expect(f"{here}: a gradient is", leaf.grad, torch.ones_like(leaf), otherwise=hint)


init()
rank, world = dist.get_rank(), dist.get_world_size()
for number, size in enumerate((2, 1, 37)):
    for dtype in (torch.float32, torch.float64):
        case = f"{size * world} values, {name_of(dtype)}"
        look(case, size, dtype, 100 * number, expanded=False)
look("the gradient of a sum", 3, torch.float32, 900, expanded=True)
two_shards()
