"""Folds what a claim has found into one number that not-a-number cannot hide from.

`max(1e-12, nan)` is 1e-12 in Python, and gloo's `all_reduce(MAX)` drops not-a-number from every
rank but the first. So claims fold with `worst`, and over ranks with `worst_of_ranks`.
"""

import math
from collections.abc import Iterable
from typing import Any


def worst(*found: Any, floor: float = 0.0) -> float:
    """The largest of all numbers found; infinite if one of them is not a finite number.

    Args:
        *found: numbers, tensors of any shape, or iterables of these.
        floor: what is returned if all are smaller: rounding errors differ from CPU to CPU.

    Raises:
        ValueError: nothing was found, so nothing can be claimed.
    """
    numbers = [number for each in found for number in _numbers(each)]
    if not numbers:
        raise ValueError("nothing was found, so nothing can be claimed: worst() got no number")
    return max(floor, *numbers) if all(map(math.isfinite, numbers)) else math.inf


def worst_of_ranks(*found: Any, floor: float = 0.0, group: Any = None) -> float:
    """The same over all ranks of the group, gathered: every rank calls it and gets the result."""
    import torch.distributed as dist

    gathered: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(gathered, worst(*found, floor=floor), group=group)
    return worst(gathered, floor=floor)


def _numbers(found: Any) -> Iterable[float]:
    """The numbers in a number or nested iterables; of a tensor's, the smallest and the largest."""
    if isinstance(found, (int, float)):
        return [float(found)]
    if hasattr(found, "max"):  # a tensor or an array: both of these keep not-a-number
        return [found.min().item(), found.max().item()] if len(found.reshape(-1)) else []
    return [number for each in found for number in _numbers(each)]
