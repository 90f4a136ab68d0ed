"""Three operations for the tape."""

import torch
from tape import Variable, record


def sigmoid(x: Variable) -> Variable:
    """1 / (1 + exp(-x)), of any shape."""
    r = record(x.value.sigmoid(), [x], lambda dL_dr: [dL_dr * r * (1 - r)])  # does not overflow
    return r


def maximum(a: Variable, b: Variable) -> Variable:
    """The larger of a and b, number by number; equal numbers share the gradient."""
    share = (a.value > b.value) + 0.5 * (a.value == b.value)  # of the gradient, for a
    return a * share + b * (1 - share)


def take(x: Variable, index: torch.Tensor) -> Variable:
    """Rows of x: (n, d), (m,) -> (m, d)."""
    chosen = torch.nn.functional.one_hot(index, x.shape[0]).to(x.value)  # (m, n)
    return Variable(chosen) @ x  # its gradient, chosen.mT @ dL_dr, sums rows that were taken twice
