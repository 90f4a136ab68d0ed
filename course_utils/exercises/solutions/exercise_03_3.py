"""A sampler with padding and epochs."""

import torch


def my_share(size: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """The indices that this rank is given in this epoch."""
    generator = torch.Generator().manual_seed(seed + epoch)  # the same on all ranks
    order = torch.randperm(size, generator=generator).tolist()
    total = -(-size // ranks) * ranks  # rounded up to what divides
    order = [order[place % size] for place in range(total)]  # from the beginning once more
    return order[rank::ranks]
