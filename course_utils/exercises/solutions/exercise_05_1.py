"""Tensors flat, padded and cut; and put together again."""

from collections.abc import Sequence

import torch
import torch.distributed as dist


def shard(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """This rank's part of `tensors`, flat: a new tensor (n,), the same n on every rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    size = -(-len(flat) // ranks)  # rounded up
    padded = torch.cat([flat, flat.new_zeros(size * ranks - len(flat))])
    return padded[rank * size : (rank + 1) * size].clone()  # the whole can go


def unshard(part: torch.Tensor, shapes: Sequence[torch.Size]) -> list[torch.Tensor]:
    """The tensors of these shapes that all ranks' parts make up."""
    whole = part.new_empty(len(part) * dist.get_world_size())
    dist.all_gather_into_tensor(whole, part)
    sizes = [shape.numel() for shape in shapes]
    parts = whole[: sum(sizes)].split(sizes)
    return [values.view(shape) for values, shape in zip(parts, shapes, strict=True)]
