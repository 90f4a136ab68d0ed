"""A part for every device: the first ones get a row more."""

import torch


def scatter(batch: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Exactly `count` parts of `batch` (B, ...), along its first dimension, as equal as can be."""
    size, larger = divmod(len(batch), count)  # the first `larger` parts have a row more
    return list(batch.split([size + (part < larger) for part in range(count)]))
