"""A Hessian-vector product from two backward passes."""

from collections.abc import Callable

import torch
from tape import Variable, grad


def hvp(f: Callable[[Variable], Variable], x: Variable, v: torch.Tensor) -> torch.Tensor:
    """The Hessian of f at x times v, all of length n."""
    (gradient,) = grad(f(x), [x])
    (product,) = grad((gradient * v).sum(), [x])  # d/dx of (gradient . v) = H v
    return torch.zeros_like(v) if product is None else product.value  # None: f is linear
