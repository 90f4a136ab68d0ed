"""Calls the student's f and g, on all ranks and on smaller groups, and looks at both passes."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from exercise_06_1 import f, g

from course_utils.exercises.cut_layers import measure
from course_utils.worker import device, init, report

init()
rank, world = dist.get_rank(), dist.get_world_size()
first, rest = [0, 1], list(range(2, world))
groups = {tuple(members): dist.new_group(members) for members in (first, rest) if members}
own = first if rank < 2 else rest


def probe(name: str, function: Callable, members: list[int], group: object) -> None:
    """Report what `function` does within `members`, and what it should do."""
    values = [[1.0, 2.0] if name == "f" else [1.0 + r, 10.0 * r] for r in range(world)]
    gradients = [[1.0 + 10.0 * r] * 2 for r in range(world)] if name == "f" else [[3.0] * 2] * world
    x = torch.tensor([values[rank]], device=device())  # (1, 2)
    factors = torch.tensor(gradients[rank], device=device())
    kept: list[torch.Tensor] = []

    def call(leaf: torch.Tensor) -> torch.Tensor:
        kept.append(leaf * 1)  # not a leaf, as in a model
        return function(kept[0], group)

    found = measure(call, {"x": x}, factors)
    total = [sum((gradients if name == "f" else values)[r][i] for r in members) for i in range(2)]
    report(
        name=name,
        members=members,
        found=found,
        y=[values[rank] if name == "f" else total],
        gradient=[total if name == "f" else gradients[rank]],
        changed=not torch.equal(kept[0], x),
    )


for name, function in (("g", g), ("f", f)):
    probe(name, function, list(range(world)), None)
    if world > 2:
        probe(name, function, own, groups[tuple(own)])
