"""Calls the three operations of the student's file, and torch's."""

from typing import Any

import torch

from course_utils.checking.compare import NAN, has_nan
from course_utils.checking.findings import random_values

from beside_torchs_autograd import compare
from exercise_01_4 import leaky_relu, log_softmax, rms_norm


def torch_rms_norm(x: torch.Tensor) -> torch.Tensor:
    """(B, D) -> (B, D): each row over the root of its mean square."""
    return x / x.square().mean(1, keepdim=True).sqrt()


def hint(operation: str):
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


for rows in ([[1.0, -2.0, 2.0], [0.5, 1.5, -1.0]], random_values(3, 3, 5).cpu().double().tolist()):
    for name, ours, theirs in (
        ("leaky_relu", leaky_relu, lambda x: torch.where(x > 0, x, 0.1 * x)),
        ("log_softmax", log_softmax, lambda z: z.log_softmax(1)),
        ("rms_norm", rms_norm, torch_rms_norm),
    ):
        compare(f"{name} of {len(rows)} rows", ours, theirs, hint(name), second=False, x=rows)
