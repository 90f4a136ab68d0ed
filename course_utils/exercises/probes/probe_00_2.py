"""Calls the student's all_gather, and watches which operations it uses and what it sends."""

import torch
import torch.distributed as dist
from exercise_00_2 import all_gather
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.exercises.findings import report
from course_utils.worker import device, init


class Wire(TorchDispatchMode):
    """Records the distributed operations, and the bytes this rank sends point to point."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []
        self.sent = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            name = func.__name__.partition(".")[0].strip("_")
            self.operations.append(name)
            if name == "send":
                self.sent += sum(tensor.nbytes for tensor in args[0])
        return func(*args, **(kwargs or {}))


def measure(length: int) -> None:
    """Report what the student's function makes of rank r's 10 r + 0, 10 r + 1, ..."""
    mine = 10.0 * dist.get_rank() + torch.arange(length, device=device())
    before = mine.clone()
    with Wire() as wire:
        answer = all_gather(mine)
    is_list = isinstance(answer, (list, tuple))
    tensors = is_list and all(isinstance(each, torch.Tensor) for each in answer)
    report(
        length=length,
        kind=type(answer).__name__,
        values=[each.tolist() for each in answer] if tensors else None,
        shapes=[list(each.shape) for each in answer] if tensors else None,
        collectives=sorted(set(wire.operations) - {"send", "recv", "recv_any_source"}),
        sent=wire.sent,
        changed=not torch.equal(mine, before),
    )


init()
for length in (1, 3):
    measure(length)
