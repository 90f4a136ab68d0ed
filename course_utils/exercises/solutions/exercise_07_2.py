"""Exact perplexity over ranks with uneven shares."""

import math

import torch
import torch.distributed as dist


def perplexity(losses: torch.Tensor) -> float:
    """The perplexity over all ranks, from the loss of each token this rank predicted: (n,)."""
    total = torch.tensor([0.0, losses.numel()], dtype=torch.float64, device=losses.device)
    total[0] = losses.sum(dtype=torch.float64)  # 0 for an empty share
    dist.all_reduce(total)  # sum of losses and number of tokens, 16 bytes
    return math.exp(total[0] / total[1])
