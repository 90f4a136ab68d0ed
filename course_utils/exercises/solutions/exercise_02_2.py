"""The gradient over all rows, out of means over parts."""

import torch


def mean_gradient(gradients: list[torch.Tensor], rows: list[int]) -> torch.Tensor:
    """The gradient over all rows; gradients[r] (n,) is that of the mean over rows[r] rows."""
    # Not 0 * nan: what comes from no rows is left out.
    pairs = [(gradient, count) for gradient, count in zip(gradients, rows, strict=True) if count]
    return sum(gradient * (count / sum(rows)) for gradient, count in pairs)
