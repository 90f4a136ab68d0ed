"""Notebook 02, data parallel: parts of a batch, the mean of gradients."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.exercises.calls import called, same
from course_utils.exercises.checking import exercise
from course_utils.exercises.compare import TOLERANCE, Wrong, count, expect, kind

COUNTS = (1, 2, 3, 4, 7)  # devices


@exercise("02.1", "scatter that leaves nobody out", without=("tensor_split", "array_split"))
def check_02_1(scatter: Callable[[Tensor, int], Any]) -> list[str]:
    """The parts of batches of 0 to 13 rows, one to three dimensions, and their gradient."""
    for rows in (5, 4, 10, 3, 13, 1, 0, *range(6, 13)):
        for devices in COUNTS:
            _check_parts(scatter, torch.arange(rows), devices)
    image = torch.arange(30.0).view(5, 3, 2)
    for devices in (4, 7):
        _check_parts(scatter, image, devices)
    for rows, devices in ((5, 4), (3, 5)):
        _check_flow(scatter, rows, devices)
    return [
        f"batches of 0 to 13 rows on {', '.join(map(str, COUNTS))} devices: all rows, in order",
        "sizes that differ by at most 1, the larger first; empty parts of the batch's shape and "
        "dtype where rows are few",
        "gradients flow back to the batch, also where devices outnumber its rows",
    ]


def _sizes(rows: int, devices: int) -> list[int]:
    size, larger = divmod(rows, devices)
    return [size + (part < larger) for part in range(devices)]


def _check_parts(scatter: Callable[[Tensor, int], Any], batch: Tensor, devices: int) -> None:
    call = f"scatter of {count(len(batch), 'row')} for {count(devices, 'device')}"
    hint = "Which parts are there to be cut, and which are empty?"
    given = batch.clone()
    parts = called(call, scatter, given, devices, hint=hint)
    if not isinstance(parts, (list, tuple)) or not all(torch.is_tensor(part) for part in parts):
        raise Wrong(f"{call} returned {kind(parts)}, expected a list of tensors")
    sizes, expected = [len(p) if p.dim() else None for p in parts], _sizes(len(batch), devices)
    if sizes != expected:
        hint = _size_hint(sizes, expected)
        raise Wrong(f"{call} gave parts of {sizes}, expected {expected}", hint)
    if any(part.shape[1:] != batch.shape[1:] for part in parts):
        shapes = [tuple(part.shape) for part in parts]
        hint = "Only the first dimension is cut, for an empty part too."
        raise Wrong(f"{call} gave the shapes {shapes}", hint)
    if other := {part.dtype for part in parts} - {batch.dtype}:
        hint = "Of what is a part made, an empty one too?"
        raise Wrong(f"{call} gave parts of {other.pop()}, expected {batch.dtype}", hint)
    if not torch.equal(torch.cat(list(parts)), batch):
        found = [part.tolist() for part in parts] if batch.dim() == 1 else "rows in another order"
        raise Wrong(f"{call} gave {found}", "In which order do the rows come back from gather?")


def _size_hint(sizes: list[int | None], expected: list[int]) -> str:
    """The question that fits wrong sizes."""
    if len(sizes) < len(expected):
        return "Somebody gets no part at all. What would that device be called with?"
    if len(sizes) > len(expected):
        return "There are more parts than devices. Who takes the last one?"
    if sum(size or 0 for size in sizes) != sum(expected):
        return "Count the rows: some are lost, or there twice."
    if sorted(sizes) == sorted(expected):
        return "The sizes are right, but the larger parts come first."
    return "Sizes differ by at most 1. To whom do the rows go that are left over?"


def _check_flow(scatter: Callable[[Tensor, int], Any], rows: int, devices: int) -> None:
    """Row r of part p gets the gradient p + 1."""
    batch = torch.zeros(rows, 2, requires_grad=True)
    hint = "Do you stay with tensors, so that autograd can follow?"
    call = "scatter of a batch that asks for its gradient"
    parts = called(call, scatter, batch, devices, hint=hint)
    total = sum((number + 1.0) * part.sum() for number, part in enumerate(parts))
    if total.requires_grad:
        total.backward()
    expected = [part + 1.0 for part, size in enumerate(_sizes(rows, devices)) for _ in range(size)]
    found = None if batch.grad is None else batch.grad[:, 0].tolist()
    cut = "Are your parts still connected with the batch, for autograd?"
    cut = cut if found is None or 0 in found else "Which part did each row go to, and how often?"
    where = f"{rows} rows, {devices} devices: the gradient of the batch is"
    expect(where, found, expected, otherwise=cut)


@exercise("02.2", "the right mean of gradients")
def check_02_2(mean_gradient: Callable[[list[Tensor], list[int]], Any]) -> list[str]:
    """Against one process, for even, uneven and empty parts, in two dtypes."""
    cases = ([3, 1], [2, 2], [3, 3, 3, 1], [2, 0, 1], [0, 4], [5], [7, 1, 0, 0, 3])
    for dtype in (torch.float64, torch.float32):
        for rows in cases:
            _check_mean(mean_gradient, rows, dtype)
    diverged = [torch.tensor([1.0, 2.0]), torch.full((2,), math.nan), torch.tensor([3.0, 4.0])]
    found = called(
        "3 devices with 1, 2, 1 rows, the second diverged: it", mean_gradient, diverged, [1, 2, 1]
    )
    if not (torch.is_tensor(found) and found.isnan().all()):
        raise Wrong(
            "3 devices with 1, 2, 1 rows: device 1 has 2 rows and brings nan; returned "
            f"{found.tolist() if torch.is_tensor(found) else found}, expected nan",
            "That device has diverged. Hiding it would train on without its rows: "
            "leave out only who has 0 rows.",
        )
    return [
        "even, uneven and empty parts on 1 to 5 devices: the gradient of the mean over all rows",
        "in float32 and float64; the gradients and rows that were given are as they were",
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
    hint = "gradients[r] and rows[r] belong to device r. What does your line make of them?"
    if 0 in rows:
        hint = "Who had no rows brings nan, and 0 rows. What does your line make of them?"
    brought = [each.clone() for each in given]
    found = called(f"{case}: it", mean_gradient, brought, list(rows), hint=hint)
    if not torch.is_tensor(found) or found.shape != (2,):
        what = tuple(found.shape) if torch.is_tensor(found) else kind(found)
        raise Wrong(f"{case}: returned {what}, expected a tensor of shape (2,)")
    name = str(dtype).removeprefix("torch.")
    mistakes = _mean_mistakes(values, rows)
    otherwise = "A device with n rows stands for n rows out of all. What is its weight?"
    if found.isnan().any():
        otherwise = "What is 0 times nan? Who brings nothing should not be asked."
    if torch.allclose(found.double(), exact, rtol=1e-6):
        otherwise = f"Nearly right. In which dtype are the weights, and the sum? Not in {name}."
    where, got = f"{case}, {name}: returned", found.tolist()
    tolerance = TOLERANCE[name]
    expect(where, got, exact.tolist(), mistakes, otherwise, tolerance)
    if found.dtype != dtype:
        said = str(found.dtype).removeprefix("torch.")
        raise Wrong(f"{where} {said}, expected {name}", "The gradients' own dtype will do.")
    if not same(given, brought):
        raise Wrong(f"{case}: the gradients have changed", "Who else needs them?")


def _mean_mistakes(values: list[Tensor], rows: list[int]) -> list[tuple[str, Any]]:
    """The question for each known mistake, with the mean that it gives."""
    filled = [value for value, n in zip(values, rows, strict=True) if n]
    weighted = sum(value * n for value, n in zip(values, rows, strict=True))
    means = "That is a mean of means. Whose rows weigh too much in it?"
    divisor = "Right weights, wrong divisor: what do the weights add up to?"
    mistakes = [
        (means, sum(filled) / len(filled)),
        (means, sum(filled) / len(rows)),
        ("That is a sum of means. How large does it get with more devices?", sum(filled)),
        ("That is the gradient of the sum over all rows. And of their mean?", weighted),
        (divisor, weighted / len(rows)),
        (divisor, weighted / max(rows)),
    ]
    return [(question, wrong.tolist()) for question, wrong in mistakes]
