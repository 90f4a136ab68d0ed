"""A row parallel layer, with its bias."""

import torch
from torch.nn.functional import linear
from tp_communications import reduce_from_group, split_to_group


def row(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, cut: bool) -> torch.Tensor:
    """From x (B, in/P), or (B, in) if not `cut`, weight (out, in/P), bias (out,) to (B, out)."""
    part = x if cut else split_to_group(x)  # (B, in/P)
    return reduce_from_group(linear(part, weight)) + bias  # after the sum: once
