"""01.4: find the mistake."""

from collections.abc import Callable
from typing import Any

import torch

from course_utils.checking.compare import NAN, has_nan
from course_utils.checking.findings import random_values
from lessons.nb01.beside_torch import compare

TITLE = "find the mistake"
PROVEN = ("leaky_relu, log_softmax and rms_norm: values and gradients right, rows of any length",)
WITHOUT = ("autograd", "hessian", "jacobian", "jacrev", "jacfwd", "jvp", "vjp", "linearize")
AS_GIVEN = "a2ba34bbcc50"
OURS = '''\
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
'''


def cases(leaky_relu: Callable, log_softmax: Callable, rms_norm: Callable) -> None:
    """The three operations beside torch's."""
    for rows in (
        [[1.0, -2.0, 2.0], [0.5, 1.5, -1.0]],
        random_values(3, 3, 5).cpu().double().tolist(),
    ):
        for name, ours, theirs in (
            ("leaky_relu", leaky_relu, lambda x: torch.where(x > 0, x, 0.1 * x)),
            ("log_softmax", log_softmax, lambda z: z.log_softmax(1)),
            ("rms_norm", rms_norm, torch_rms_norm),
        ):
            compare(f"{name} of {len(rows)} rows", ours, theirs, hint(name), second=False, x=rows)


def torch_rms_norm(x: torch.Tensor) -> torch.Tensor:
    """(B, D) -> (B, D): each row over the root of its mean square."""
    return x / x.square().mean(1, keepdim=True).sqrt()


def hint(operation: str) -> Callable:
    """The question that fits a wrong value of an operation."""

    def question(aspect: str, got: Any, expected: Any) -> str:
        if has_nan(got):
            return NAN
        if aspect == "the value":
            return "The values were right before. What did you change?"
        if operation != "rms_norm":
            return "This one was right before. What did you change?"
        return "Change one x of a row a little: which results of that row change, and why?"

    return question


SIZE = "(x * x).mean(1, keepdim=True) ** 0.5"


def _own_rule(gradient: str) -> tuple[str, ...]:
    """An rms_norm of 01.4 that writes its own chain rule."""
    rule = (
        f"def rule(dL_dr):\n    return [{gradient}]\n"
        "r = record(x.value / size, [x], rule)\nreturn r"
    )
    return SIZE, "x.value.square().mean(1, keepdim=True).sqrt()", "return x / size", rule


WRONG = [
    ("only half mended", *_own_rule("dL_dr / size - x"), "which results of that row"),
    (
        "the sign",
        *_own_rule("(dL_dr + r * (dL_dr * r).mean(1, keepdim=True)) / size"),
        "the gradient of x is",
    ),
    (
        "right for rows of three",
        *_own_rule("(dL_dr - r * (dL_dr * r).sum(1, keepdim=True) / 3) / size"),
        "rms_norm of 3 rows: the gradient of x is",
    ),
    ("another value", "x).mean(1", "x).sum(1", "The values were right before"),
    (
        "the wrong one mended",
        "dL_dr - r.exp() * dL_dr.sum",
        "dL_dr - r * dL_dr.sum",
        "This one was right before",
    ),
]
RIGHT = [
    (
        "right once, as asked",
        *_own_rule("(dL_dr - r.value * (dL_dr * r).mean(1, keepdim=True)) / size"),
    )
]
