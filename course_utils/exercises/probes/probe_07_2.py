"""Calls the student's perplexity on uneven shares, and watches what goes over the wire."""

import math

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.exercises.findings import report
from course_utils.worker import device, init

from exercise_07_2 import perplexity

SHARES = {1: [4], 2: [3, 1], 3: [4, 0, 2], 4: [0, 5, 1, 2]}  # tokens of each rank
TO_REDUCE = ("allreduce", "broadcast", "reduce_.", "send", "recv")  # what is sent comes first


class Wire(TorchDispatchMode):
    """Counts the collectives, and the bytes this rank hands to them."""

    def __init__(self) -> None:
        super().__init__()
        self.collectives = self.sent = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.collectives += 1
            tensors = args[0] if func.__name__.startswith(TO_REDUCE) else args[1]
            tensors = tensors if isinstance(tensors, list) else [tensors]
            self.sent += sum(tensor.nbytes for tensor in flat(tensors))
        return func(*args, **(kwargs or {}))


def flat(tensors: list) -> list[torch.Tensor]:
    """The tensors of a list, or of a list of lists."""
    nested = (flat(each) if isinstance(each, list) else [each] for each in tensors)
    return [each for some in nested for each in some if isinstance(each, torch.Tensor)]


def measure(case: str, shares: list[torch.Tensor]) -> None:
    """Report what the student's function makes of this rank's share, and the right value."""
    every = torch.cat(shares).double().tolist()
    with Wire() as wire:
        answer = perplexity(shares[dist.get_rank()].to(device()))
    report(
        case=case,
        answer=answer if isinstance(answer, (int, float)) else None,
        kind=type(answer).__name__,
        expected=math.exp(math.fsum(every) / len(every)),
        collectives=wire.collectives,
        sent=wire.sent,
    )


init()
counts = SHARES[dist.get_world_size()]
measure("small", [torch.full((n,), 1.0 + r) for r, n in enumerate(counts)])
generator = torch.Generator().manual_seed(0)
measure("large", [torch.rand(50_000 * n, generator=generator) for n in counts])
