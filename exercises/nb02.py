"""Notebook 02, data parallel: scatter and gather, threads, a mean of means."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.calls import called
from course_utils.checking.compare import TOLERANCE, Wrong, count, expect, kind, name_of, plain
from course_utils.checking.probes import probe
from course_utils.checking.registry import exercise
from course_utils.checking.values import is_tensor


@exercise("02.1", "scatter and gather", file="exercise_02_1.py", without=("DataParallel", "comm"))
def check_02_1() -> list[str]:
    """Parts of tensors and of nested values, joined outputs, devices, and the gradient."""
    probe("probe_02_1.py", 1)
    return [
        "scatter: 1 to 13 rows on 1 to 7 devices, nested values, each part on its own device",
        "gather: uneven parts, losses without dimensions, nested outputs, on the right device",
        "gradients flow back through both",
    ]


@exercise(
    "02.2",
    "replicas side by side",
    file="exercise_02_2.py",
    without=("parallel_apply", "DataParallel"),
)
def check_02_2() -> list[str]:
    """Order, threads, the setting that a thread does not inherit, and exceptions."""
    probe("probe_02_2.py", 1)
    return [
        "1 to 5 replicas ran at the same time, each in its own thread; outputs in order",
        "the replicas record gradients when their caller does, and only then",
        "an exception reaches the caller, with its replica's number",
    ]


@exercise("02.3", "the right mean of gradients")
def check_02_3(mean_gradient: Callable[[list[Tensor], list[int]], Any]) -> list[str]:
    """Against one process, for even, uneven and empty parts, in two dtypes."""
    cases = ([3, 1], [2, 2], [3, 3, 3, 1], [2, 0, 1], [0, 4], [5], [7, 1, 0, 0, 3])
    for dtype in (torch.float64, torch.float32):
        for rows in cases:
            _check_mean(mean_gradient, rows, dtype)
    diverged = [torch.tensor([1.0, 2.0]), torch.full((2,), math.nan), torch.tensor([3.0, 4.0])]
    found = called(
        "3 devices with 1, 2, 1 rows, the second diverged: it", mean_gradient, diverged, [1, 2, 1]
    )
    if not (is_tensor(found) and found.isnan().all()):
        raise Wrong(
            "3 devices with 1, 2, 1 rows: device 1 has 2 rows and its gradient is nan; returned "
            f"{plain(found)}, expected nan",
            "That device has diverged. Do not hide it by training on without its rows: "
            "leave out only devices with 0 rows.",
        )
    return [
        "even, uneven and empty parts on 1 to 5 devices: the gradient of the mean over all rows",
        "in float32 and float64; gradients and rows are left unchanged",
    ]


def _check_mean(mean_gradient: Callable, rows: list[int], dtype: torch.dtype) -> None:
    # Of sum(w * x) the gradient is x, so a device's gradient is the mean of its rows.
    generator = torch.Generator().manual_seed(len(rows))
    values = [torch.randn(2, generator=generator, dtype=dtype) for _ in rows]
    nothing = torch.full((2,), math.nan, dtype=dtype)
    given = [value if n else nothing for value, n in zip(values, rows, strict=True)]
    total = sum(rows)
    exact = sum(v.double() * n for v, n in zip(values, rows, strict=True)) / total
    case = f"{count(len(rows), 'device')} with {', '.join(map(str, rows))} rows"
    hint = "gradients[r] and rows[r] belong to device r. What does your code do with them?"
    if 0 in rows:
        hint = "A device without rows has the gradient nan. What does your code do with it?"
    found = called(f"{case}: it", mean_gradient, given, list(rows), hint=hint)
    if not is_tensor(found) or found.shape != (2,):
        what = tuple(found.shape) if is_tensor(found) else kind(found)
        raise Wrong(f"{case}: returned {what}, expected a tensor of shape (2,)")
    name = name_of(dtype)
    otherwise = "A device with n of the rows has what weight in the mean?"
    where, mistakes = f"{case}, {name}: returned", _mean_mistakes(values, rows)
    if 0 in rows:
        mistakes.append(("What is 0 times nan? Leave out the devices without rows.", nothing))
    expect(where, found, exact, mistakes, otherwise, TOLERANCE[name])
    if found.dtype != dtype:
        said = f"{where} {name_of(found.dtype)}, expected {name}"
        raise Wrong(said, "Keep the dtype of the gradients.")


def _mean_mistakes(values: list[Tensor], rows: list[int]) -> list[tuple[str, Any]]:
    filled = [value for value, n in zip(values, rows, strict=True) if n]
    weighted = sum(value * n for value, n in zip(values, rows, strict=True))
    means = "That is a mean of means. Whose rows weigh too much in it?"
    divisor = "The weights are right, the divisor is wrong: what do the weights add up to?"
    return [
        (means, sum(filled) / len(filled)),
        (means, sum(filled) / len(rows)),
        ("That is a sum of means. How large does it get with more devices?", sum(filled)),
        ("That is the gradient of the sum over all rows, not of their mean.", weighted),
        (divisor, weighted / len(rows)),
        (divisor, weighted / max(rows)),
    ]
