"""Calls the student's f and g, on all ranks and on smaller groups, and looks at both passes."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.exercises.cut_layers import measure
from course_utils.exercises.findings import random_values, report
from course_utils.worker import init

from exercise_06_1 import f, g

init()
rank, world = dist.get_rank(), dist.get_world_size()
first, rest = [0, 1], list(range(2, world))
groups = {tuple(members): dist.new_group(members) for members in (first, rest) if members}
own = first if rank < 2 else rest


def probe(
    name: str,
    function: Callable,
    members: list[int],
    group: object,
    dtype: torch.dtype,
    beside: bool = False,
) -> None:
    """Report what `function` does and should do within `members`; `beside`: x is used there too."""
    shape = (2, 3) if len(members) == world else (2, 1, 3)
    # The same on every rank: x of f, and the gradient of g.
    values = [random_values(1 + r * (name == "g"), *shape, dtype=dtype) for r in range(world)]
    gradients = [random_values(9 + r * (name == "f"), *shape, dtype=dtype) for r in range(world)]
    x, factors = values[rank], gradients[rank]
    kept: list[torch.Tensor] = []

    def call(leaf: torch.Tensor) -> torch.Tensor:
        kept.append(leaf * 1)  # not a leaf, as in a model
        y = function(kept[0], group)
        if beside and isinstance(y, torch.Tensor):
            y = y + (kept[0] - kept[0].detach())  # adds 0, and a gradient that is not f's
        return y

    found = measure(call, {"x": x}, factors)
    total = sum((gradients if name == "f" else values)[r] for r in members)
    gradient = (total if name == "f" else factors) + factors * beside
    report(
        name=name,
        members=members,
        found=found,
        y=x if name == "f" else total,
        gradient=gradient,
        changed=not torch.equal(kept[0], x),
        beside=beside,
    )


for dtype in (torch.float32, torch.float64):
    for name, function in (("g", g), ("f", f)):
        probe(name, function, list(range(world)), None, dtype)
        if world > 2:
            probe(name, function, own, groups[tuple(own)], dtype)
    probe("f", f, list(range(world)), None, dtype, beside=True)
