"""Reduce-scatter of gradients, with the right mean."""

import torch
import torch.distributed as dist


def reduce_gradient(gradient: torch.Tensor, rows: int) -> torch.Tensor:
    """This rank's shard (n / N,) of the mean over all rows, of the ranks' `gradient`s (n,)."""
    total = torch.tensor(rows, device=gradient.device)
    dist.all_reduce(total)
    weighted = gradient * (rows / total.item())  # before the sum, which might overflow
    shard = gradient.new_empty(len(gradient) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, weighted)
    return shard
