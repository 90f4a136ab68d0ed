"""02.3: the right mean of gradients."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.compare import count, expect_new, judge, name_of
from course_utils.checking.findings import observe

TITLE = "the right mean of gradients"
PROVEN = (
    "even, uneven and empty parts on 1 to 5 devices: the gradient of the mean over all rows",
    "in float32 and float64; gradients and rows are left unchanged",
    "a device that has diverged stays visible",
)
HINTS = {
    "ZeroDivisionError": (
        "A device without rows has the gradient nan. What does your code do with it?"
    ),
}
OURS = '''"""The mean gradient over all rows, from each device's own mean."""

import torch


def mean_gradient(gradients: list[torch.Tensor], rows: list[int]) -> torch.Tensor:
    """The gradient over all rows; gradients[r] (n,) belongs to the mean loss of rows[r] rows."""
    # Whoever has no rows is left out: 0 * nan would be nan.
    pairs = [(gradient, count) for gradient, count in zip(gradients, rows, strict=True) if count]
    return sum(gradient * (count / sum(rows)) for gradient, count in pairs)
'''
ROWS = ([3, 1], [2, 2], [3, 3, 3, 1], [2, 0, 1], [0, 4], [5], [7, 1, 0, 0, 3])
NAN, INF = math.nan, math.inf
DIVERGED = (  # gradients of three devices with 1, 2 and 1 rows
    ("nan", [1.0, 2.0], [NAN, NAN], [3.0, 4.0]),
    ("partly nan", [1.0, 2.0], [NAN, 6.0], [3.0, 4.0]),
    ("infinite", [INF, 2.0], [-1.0, 6.0], [3.0, 4.0]),
    ("minus infinity", [1.0, 2.0], [5.0, 6.0], [-INF, -INF]),
)


def cases(mean_gradient: Callable) -> None:
    """Against one process, for even, uneven and empty parts, in two dtypes."""
    for dtype in (torch.float64, torch.float32):
        for rows in ROWS:
            look(mean_gradient, rows, dtype)
    for what, *values in DIVERGED:
        look_at_diverged(mean_gradient, what, [torch.tensor(value) for value in values])


def look(mean_gradient: Callable, rows: list[int], dtype: torch.dtype) -> None:
    """Random gradients; a device without rows has nan."""
    # Of sum(w * x) the gradient is x, so a device's gradient is the mean of its rows.
    generator = torch.Generator().manual_seed(len(rows))
    values = [torch.randn(2, generator=generator, dtype=dtype) for _ in rows]
    nothing = torch.full((2,), NAN, dtype=dtype)
    given = [value.clone() if n else nothing for value, n in zip(values, rows, strict=True)]
    exact = sum(v.double() * n for v, n in zip(values, rows, strict=True)) / sum(rows)
    where = f"{count(len(rows), 'device')} with {', '.join(map(str, rows))} rows, {name_of(dtype)}:"
    found = observe(mean_gradient, given, list(rows), names=("`gradients`", "`rows`"))
    known = mistakes(values, rows)
    if 0 in rows:
        known.append(("What is 0 times nan? Leave out the devices without rows.", nothing))
    otherwise = "A device with n of the rows has what weight in the mean?"
    judge(where, found, exact, known, otherwise, dtype=dtype)
    expect_new(where, found)


def look_at_diverged(mean_gradient: Callable, what: str, gradients: list[Tensor]) -> None:
    """What is not finite stays in the mean."""
    rows = [1, 2, 1]
    found = observe(mean_gradient, gradients, list(rows), names=("`gradients`", "`rows`"))
    exact = sum(gradient * n for gradient, n in zip(gradients, rows, strict=True)) / sum(rows)
    where = f"3 devices with 1, 2, 1 rows, a gradient that is {what}:"
    hint = "That device has diverged. Do not hide it: leave out only devices with 0 rows."
    judge(where, found, exact, (), hint, dtype=torch.float32)


def mistakes(values: list[Tensor], rows: list[int]) -> list[tuple[str, Any]]:
    """The question for each known mistake, with the gradient that it gives."""
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


WEIGHT = "(count / sum(rows))"
MEAN = f"sum(gradient * {WEIGHT} for gradient, count in pairs)"

WRONG = [
    (
        "always float64",
        "gradient * (",
        "gradient.double() * (",
        "returned float64, expected float32",
    ),
    (
        "who diverged is left out too",
        "if count]",
        "if not gradient.isnan().any()]",
        WEIGHT,
        "(count / sum(count for _, count in pairs))",
        "Do not hide it",
    ),
    (
        "the rows are emptied",
        WEIGHT,
        "(count / total)",
        "return sum",
        "total = sum(rows)\nrows.clear()\nreturn sum",
        "changed `rows`",
    ),
    (
        "infinities are left out too",
        "if count]",
        "if gradient.isfinite().all()]",
        "a gradient that is nan: returned",
    ),
    (
        "only infinities are left out",
        "if count]",
        "if count and not gradient.isinf().any()]",
        "a gradient that is infinite: returned",
    ),
    (
        "nan as 0",
        MEAN,
        f"{MEAN}.nan_to_num(nan=0.0)",
        "Do not hide it",
    ),
    (
        "one buffer for all calls",
        f"return {MEAN}",
        f"mean = {MEAN}\n"
        "kept = mean_gradient.__dict__.setdefault(str(mean.dtype), mean.clone())\n"
        "return kept.copy_(mean)",
        "one buffer for all calls",
    ),
    (
        "the input's alias",
        f"return {MEAN}",
        f"return {MEAN} if len(rows) > 1 else gradients[0]",
        "returned memory that it was given",
    ),
    ("on the meta device", "->", "lambda mean: mean.to('meta')", "a Tensor on the meta device"),
    ("sparse", "->", "lambda mean: mean.to_sparse()", "returned a sparse_coo Tensor"),
    (
        "nested",
        "->",
        "lambda mean: torch.nested.nested_tensor([mean])",
        "returned a nested Tensor",
    ),
    ("complex", "->", "lambda mean: mean.to(torch.complex64)", "returned a complex Tensor"),
    ("mean of means", MEAN, "torch.stack(gradients).mean(0)", "a mean of means"),
    ("sum of means", MEAN, "sum(gradients)", "a sum of means"),
    ("no division", WEIGHT, "count", "gradient of the sum over all rows"),
    ("divided by the devices", "sum(rows)", "len(rows)", "the divisor is wrong"),
    ("zero times nan", " if count]", "]", "What is 0 times nan?"),
    ("in place", f"gradient * {WEIGHT}", f"gradient.mul_{WEIGHT}", "changed `gradients`"),
    (
        "single precision",
        "gradient * (",
        "gradient.float() * (",
        "In which dtype do you compute",
    ),
    (
        "divided by no rows",
        " if count]",
        "]",
        f"gradient * {WEIGHT}",
        "gradient / (sum(rows) / count)",
        "A device without rows has the gradient nan",
    ),
    ("weights upside down", WEIGHT, "(sum(rows) / count)", "what weight in the mean?"),
    ("a list", MEAN, f"[{MEAN}]", "returned a list, expected a Tensor"),
]
RIGHT = [
    (
        "all at once",
        """
import torch

def mean_gradient(gradients, rows):
    count = torch.tensor(rows, dtype=gradients[0].dtype)
    there = count > 0
    return (torch.stack(gradients)[there] * count[there, None]).sum(0) / sum(rows)
""",
    ),
    (
        "in place, in a tensor of its own",
        """
import torch

def mean_gradient(gradients, rows):
    mean = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, rows):
        if count:
            mean += gradient * count
    return mean.div_(sum(rows))
""",
    ),
]
