"""The global norm, from shards."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from course_utils.worker import device


def global_norm(shards: Sequence[torch.Tensor | None]) -> float:
    """The 2-norm of all values of all ranks' shards; the same on every rank."""
    total = torch.zeros((), dtype=torch.float64, device=device())
    for shard in shards:
        if shard is not None:
            total += shard.double().square().sum()  # in float16 a square of 300 overflows
    dist.all_reduce(total)
    return total.sqrt().item()
