"""Calls the student's f and g, on all ranks and on smaller groups, and looks at both passes."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.exercises.cut_layers import measure
from course_utils.exercises.findings import report
from course_utils.worker import device, init

from exercise_06_1 import f, g

init()
rank, world = dist.get_rank(), dist.get_world_size()
first, rest = [0, 1], list(range(2, world))
groups = {tuple(members): dist.new_group(members) for members in (first, rest) if members}
own = first if rank < 2 else rest


def probe(
    name: str, function: Callable, members: list[int], group: object, beside: bool = False
) -> None:
    """Report what `function` does and should do within `members`; `beside`: x is used there too."""
    values = [[1.0, 2.0] if name == "f" else [1.0 + r, 10.0 * r] for r in range(world)]
    gradients = [[1.0 + 10.0 * r] * 2 for r in range(world)] if name == "f" else [[3.0] * 2] * world
    x = torch.tensor([values[rank]], device=device())  # (1, 2)
    factors = torch.tensor(gradients[rank], device=device())
    kept: list[torch.Tensor] = []

    def call(leaf: torch.Tensor) -> torch.Tensor:
        kept.append(leaf * 1)  # not a leaf, as in a model
        y = function(kept[0], group)
        if beside and isinstance(y, torch.Tensor):
            y = y + (kept[0] - kept[0].detach())  # adds 0, and a gradient that is not f's
        return y

    found = measure(call, {"x": x}, factors)
    total = [sum((gradients if name == "f" else values)[r][i] for r in members) for i in range(2)]
    gradient = total if name == "f" else gradients[rank]
    if beside:
        gradient = [a + b for a, b in zip(gradient, gradients[rank], strict=True)]
    report(
        name=name,
        members=members,
        found=found,
        y=[values[rank] if name == "f" else total],
        gradient=[gradient],
        changed=not torch.equal(kept[0], x),
        beside=beside,
    )


for name, function in (("g", g), ("f", f)):
    probe(name, function, list(range(world)), None)
    if world > 2:
        probe(name, function, own, groups[tuple(own)])
probe("f", f, list(range(world)), None, beside=True)
