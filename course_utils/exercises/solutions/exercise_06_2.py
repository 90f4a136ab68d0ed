"""A column parallel layer, with and without a gather."""

import torch
from torch.nn.functional import linear
from tp_communications import copy_to_group, gather_from_group


def column(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, gather: bool) -> torch.Tensor:
    """From x (B, in), weight (out/P, in), bias (out/P,) to (B, out/P); (B, out) with `gather`."""
    y = linear(copy_to_group(x), weight, bias)  # (B, in) -> (B, out/P)
    return gather_from_group(y) if gather else y
