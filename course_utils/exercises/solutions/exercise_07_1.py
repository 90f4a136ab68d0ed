"""The causal mask, with a window or without."""

import torch


def causal_mask(length: int, window: int | None = None) -> torch.Tensor:
    """(length, length) bool: row t is True at the positions that position t may look at."""
    position = torch.arange(length)
    back = position[:, None] - position[None, :]  # from t (row) back to s (column)
    seen = back >= 0
    return seen if window is None else seen & (back < window)
