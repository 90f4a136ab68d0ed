"""The mistake was in rms_norm: its size also depends on x. Here the tape finds the gradient."""

import torch
from tape import Variable, record


def leaky_relu(x: Variable) -> Variable:
    """A tenth of each negative value, and all others unchanged; of any shape."""
    slope = torch.ones_like(x.value).masked_fill(x.value <= 0, 0.1)
    return record(x.value * slope, [x], lambda dL_dr: [dL_dr * slope])


def log_softmax(z: Variable) -> Variable:
    """(B, K) -> (B, K)."""

    def rule(dL_dr: Variable) -> list[Variable]:
        return [dL_dr - r.exp() * dL_dr.sum(1, keepdim=True)]

    r = record(z.value.log_softmax(1), [z], rule)
    return r


def rms_norm(x: Variable) -> Variable:
    """(B, D) -> (B, D)."""
    size = (x * x).mean(1, keepdim=True) ** 0.5  # (B, 1)
    return x / size
