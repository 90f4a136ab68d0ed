"""Exact accuracy over ranks."""

import torch
import torch.distributed as dist


def accuracy(right: torch.Tensor, size: int) -> float:
    """The share of the `size` samples that are right, the same on every rank.

    `right` (n,), bool: of the samples that DistributedSampler(shuffle=False) gave this rank.
    """
    rank, world = dist.get_rank(), dist.get_world_size()
    number = rank + world * torch.arange(len(right), device=right.device)  # of each sample
    count = (right & (number < size)).sum()  # without padding
    dist.all_reduce(count)
    return count.item() / size
