"""Calls the student's ring functions on tensors of several lengths, and watches every message."""

import sys
from importlib import import_module

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

TASKS = {
    "reduce_scatter": ("exercise_04_1", "ring_reduce_scatter"),
    "all_gather": ("exercise_04_2", "ring_all_gather"),
    "all_reduce": ("exercise_04_4", "ring_all_reduce"),
}
NOT_YET = -1.0


class Receivers(TorchDispatchMode):
    """Notes the ranks to which this one sends."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.c10d.send.default:
            self.ranks.add(args[2])  # tensors, group, rank, tag
        return func(*args, **(kwargs or {}))


def brought(task: str, length: int) -> torch.Tensor:
    """What this rank brings, (length,): 10^rank times 1, 2, ...; for all-gather its one chunk."""
    rank, world = dist.get_rank(), dist.get_world_size()
    values = (torch.arange(length) % 9 + 1).float()
    if task != "all_gather":
        return values * 10**rank
    gathered = torch.full((length,), NOT_YET)
    chunk = (rank + 1) % world
    finished = values.tensor_split(world)[chunk] * sum(10**r for r in range(world))
    gathered.tensor_split(world)[chunk].copy_(finished)
    return gathered


def measure(task: str, function: object, length: int) -> None:
    """Report what the function makes of a tensor, and the sizes and receivers of its messages."""
    tensor = brought(task, length).to(device())
    with Receivers() as receivers, meter() as moved:
        answer = function(tensor)
    result = answer if task == "reduce_scatter" else tensor
    report(
        length=length,
        kind=type(answer).__name__,
        values=result.flatten().tolist() if isinstance(result, torch.Tensor) else None,
        messages=[call.bytes // 4 for call in moved.calls if call.name == "send"],
        receivers=sorted(receivers.ranks),
        collectives=sorted(moved.collectives),
    )


task = sys.argv[1]
file, name = TASKS[task]
function = getattr(import_module(file), name)
init()
for length in (3, 7, 8, 13, 1, 0):
    measure(task, function, length)
