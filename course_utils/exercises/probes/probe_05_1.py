"""Calls the student's shard and unshard on several lists of tensors, and counts."""

import sys

import torch
import torch.distributed as dist

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_05_1 import shard, unshard

CASES = [
    [(2, 2), (3,)],
    [(3, 4)],
    [(1,), (), (2, 1, 3)],
    [(5,), (0,), (2,)],
    [(1,)],
]


def tensors(shapes: list[tuple[int, ...]], dtype: torch.dtype) -> list[torch.Tensor]:
    """1, 2, 3, ... in these shapes; the first lies transposed in memory, where it can."""
    made, first = [], 1
    for shape in shapes:
        count = torch.Size(shape).numel()
        values = torch.arange(first, first + count, dtype=dtype, device=device()).view(shape)
        made.append(values.t().contiguous().t() if len(shape) == 2 else values)
        first += count
    return made


def our_part(given: list[torch.Tensor]) -> torch.Tensor:
    """What `shard` should give."""
    flat = torch.cat([tensor.flatten() for tensor in given])
    size = -(-len(flat) // dist.get_world_size())
    padded = torch.cat([flat, flat.new_zeros(size * dist.get_world_size() - len(flat))])
    return padded[dist.get_rank() * size :][:size].clone()


def sharded(given: list[torch.Tensor]) -> dict:
    """What the student's shard makes of the tensors."""
    with meter() as moved:
        part = shard(given)
    found = {"kind": type(part).__name__, "sent": moved.collectives.total() + moved.messages}
    if isinstance(part, torch.Tensor):
        held = part.untyped_storage().nbytes() // part.element_size()
        found |= {"part": part, "shape": list(part.shape), "dtype": str(part.dtype), "held": held}
    return found | {"expected": our_part(given), "wanted": str(given[0].dtype)}


def unsharded(given: list[torch.Tensor]) -> dict:
    """What the student's unshard makes of our parts."""
    with meter() as moved:
        whole = unshard(our_part(given), [tensor.shape for tensor in given])
    good = isinstance(whole, list) and all(isinstance(each, torch.Tensor) for each in whole)
    return {
        "kind": type(whole).__name__,
        "whole": [each.tolist() for each in whole] if good else None,
        "shapes_got": [list(each.shape) for each in whole] if good else None,
        "expected": [each.tolist() for each in given],
        "collectives": dict(moved.collectives),
        "messages": moved.messages,
    }


init()
task = {"shard": sharded, "unshard": unsharded}[sys.argv[1]]
for dtype in (torch.float32, torch.float64):
    for shapes in CASES:
        report(shapes=[list(shape) for shape in shapes], **task(tensors(shapes, dtype)))
