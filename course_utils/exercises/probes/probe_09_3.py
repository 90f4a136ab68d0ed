"""Calls the student's clip_grad_norm on stages with random gradients, and counts bytes."""

import math

import torch
import torch.distributed as dist
from torch import nn

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_09_3 import clip_grad_norm

init()
rank, world = dist.get_rank(), dist.get_world_size()
pairs = [dist.new_group([first, first + 1]) for first in range(0, world - 1, 2)]


def gradients(case: str, of_rank: int) -> list[torch.Tensor | None]:
    """The gradients of a rank's stage; every rank can compute those of all ranks."""
    generator = torch.Generator().manual_seed(31 * of_rank + len(case))
    dtype = getattr(torch, case.partition(" ")[0])
    scale = 300 if dtype == torch.float16 else 1 + of_rank
    sizes = [(3, 2), (4,), (1,)] if of_rank % 2 == 0 else [(5,), (2, 2)]
    made = [(scale * torch.randn(size, generator=generator)).to(dtype) for size in sizes]
    if "without" in case:
        return [None for _ in made] if of_rank == 0 and world > 1 else [made[0], None, *made[2:]]
    return made


def look(case: str, limit: float, group: dist.ProcessGroup | None, members: list[int]) -> None:
    """Report what the student's function does with one stage."""
    mine = [g if g is None else g.to(device()) for g in gradients(case, rank)]
    parameters = []
    for gradient in mine:
        like = torch.ones(2, dtype=torch.float64) if gradient is None else gradient
        parameters.append(nn.Parameter(torch.randn_like(like)))
        parameters[-1].grad = None if gradient is None else gradient.clone()
    values = [p.detach().clone() for p in parameters]
    places = [p.grad.data_ptr() for p in parameters if p.grad is not None]
    with meter() as moved:
        answer = clip_grad_norm((p for p in parameters), limit, group)
    squares = [
        sum(g.double().square().sum().item() for g in gradients(case, r) if g is not None)
        for r in members
    ]
    norm = math.sqrt(sum(squares))
    factor = min(1.0, limit / norm)
    after = [p.grad for p in parameters if p.grad is not None]
    before = [g for g in mine if g is not None]
    loose = 4e-3 if "float16" in case else 1e-4
    right = len(after) == len(before) and all(
        torch.equal(a, b) if factor == 1 else torch.allclose(a, b * factor, rtol=loose, atol=1e-6)
        for a, b in zip(after, before, strict=True)
    )
    size = sum(g.double().square().sum().item() for g in before)
    along = sum((a.double() * b.double()).sum().item() for a, b in zip(after, before, strict=False))
    number = isinstance(answer, (float, int)) or (torch.is_tensor(answer) and answer.numel() == 1)
    report(
        case=f"{case}, {'all ranks' if group is None else 'a pair'}",
        kind=type(answer).__name__,
        answer=float(answer) if number else None,
        norm=norm,
        limit=limit,
        own=math.sqrt(size),
        added=sum(map(math.sqrt, squares)),
        mean=math.sqrt(sum(squares) / len(members)),
        factor=factor,
        ratio=along / size if size else factor,
        right=right,
        touched=not all(map(torch.equal, values, (p.detach() for p in parameters))),
        in_place=places == [g.data_ptr() for g in after],
        bytes=sum(call.bytes for call in moved.calls),
    )


everyone = list(range(world))
for case in ("float64", "float32", "float64 without some", "float16"):
    look(case, 0.5, None, everyone)
    look(case, 1e5, None, everyone)
    if world == 4:
        look(case, 0.5, pairs[rank // 2], [rank // 2 * 2, rank // 2 * 2 + 1])
