"""Notebook 02, data parallel: parts of a batch, the mean of gradients, bounded staleness."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.exercises.calls import called
from course_utils.exercises.checking import Wrong, exercise, probe
from course_utils.notebook import files

COUNTS = (1, 2, 3, 4, 7)  # devices
SERVED_STEPS = 36  # pushes of all workers in probe_02_3_served.py


@exercise("02.1", "scatter that leaves nobody out", without=("tensor_split", "array_split"))
def check_02_1(scatter: Callable[[Tensor, int], Any]) -> list[str]:
    """The parts of batches of 0 to 13 rows, one to three dimensions, and their gradient."""
    for rows in (5, 4, 10, 3, 13, 1, 0, *range(6, 13)):
        for count in COUNTS:
            _check_parts(scatter, torch.arange(rows), count)
    image = torch.arange(30.0).view(5, 3, 2)
    for count in (4, 7):
        _check_parts(scatter, image, count)
    _check_flow(scatter)
    return [
        f"batches of 0 to 13 rows on {', '.join(map(str, COUNTS))} devices: all rows, in order",
        "sizes that differ by at most 1, the larger first; empty parts of the batch's shape and "
        "dtype where rows are few",
        "gradients flow back to the batch",
    ]


def _check_parts(scatter: Callable[[Tensor, int], Any], batch: Tensor, count: int) -> None:
    rows = len(batch)
    size, larger = divmod(rows, count)
    expected = [size + (part < larger) for part in range(count)]
    call = f"scatter of {rows} row{'s' * (rows != 1)} for {count} device{'s' * (count != 1)}"
    hint = "Which parts are there to be cut, and which are empty?"
    parts = called(call, scatter, batch.clone(), count, hint=hint)
    if not isinstance(parts, (list, tuple)) or not all(torch.is_tensor(part) for part in parts):
        raise Wrong(f"{call} returned a {type(parts).__name__}, expected a list of tensors", "")
    sizes = [len(part) if part.dim() else None for part in parts]
    if sizes != expected:
        raise Wrong(
            f"{call} gave parts of {sizes}, expected {expected}", _size_hint(sizes, expected)
        )
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


def _check_flow(scatter: Callable[[Tensor, int], Any]) -> None:
    """Row r of part p gets the gradient p + 1."""
    batch = torch.zeros(5, 2, requires_grad=True)
    hint = "Do you stay with tensors, so that autograd can follow?"
    parts = called("scatter of a batch that asks for its gradient", scatter, batch, 4, hint=hint)
    total = sum((number + 1.0) * part.sum() for number, part in enumerate(parts))
    if total.requires_grad:
        total.backward()
    expected = [1.0, 1.0, 2.0, 3.0, 4.0]
    found = None if batch.grad is None else batch.grad[:, 0].tolist()
    if found != expected:
        message = f"5 rows, 4 devices: the gradient of the batch is {found}, expected {expected}"
        raise Wrong(message, "Are your parts still connected with the batch, for autograd?")


@exercise("02.2", "the right mean of gradients")
def check_02_2(mean_gradient: Callable[[list[Tensor], list[int]], Any]) -> list[str]:
    """Against one process, for even, uneven and empty parts."""
    for rows in ([3, 1], [2, 2], [3, 3, 3, 1], [2, 0, 1], [0, 4], [5], [7, 1, 0, 0, 3]):
        _check_mean(mean_gradient, rows)
    return [
        "even, uneven and empty parts on 1 to 5 devices: the gradient of the mean over all rows",
        "the gradients that were brought are as they were",
    ]


def _check_mean(mean_gradient: Callable[[list[Tensor], list[int]], Any], rows: list[int]) -> None:
    # Of sum(w * x) the gradient is x, so a device's gradient is the mean of its rows: 1, 2, 4, ...
    values = [torch.tensor([2.0**device, -1.0], dtype=torch.float64) for device in range(len(rows))]
    nothing = torch.full((2,), math.nan, dtype=torch.float64)
    brought = [value if count else nothing for value, count in zip(values, rows, strict=True)]
    kept = [gradient.clone() for gradient in brought]
    expected = sum(v * n for v, n in zip(values, rows, strict=True)) / sum(rows)
    case = f"{len(rows)} device{'s' * (len(rows) > 1)} with {', '.join(map(str, rows))} rows"
    hint = "gradients[r] and rows[r] belong to device r. What does your line make of them?"
    if 0 in rows:
        hint = "Who had no rows brings nan, and 0 rows. What does your line make of them?"
    found = called(f"{case}: it", mean_gradient, brought, list(rows), hint=hint)
    if not torch.is_tensor(found) or found.shape != expected.shape:
        kind = tuple(found.shape) if torch.is_tensor(found) else type(found).__name__
        raise Wrong(f"{case}: returned {kind}, expected a tensor of shape (2,)", "")
    if not torch.allclose(found.double(), expected, rtol=1e-12, atol=0):
        if torch.allclose(found.double(), expected, rtol=1e-6, atol=0):
            said = f"nearly right: returned {_short(found, 10)}, expected {_short(expected, 10)}"
            question = "The gradients are float64. In which dtype are the weights, and the sum?"
            raise Wrong(f"{case}: {said}", question)
        said = f"returned {_short(found)}, expected {_short(expected)}"
        ours = ", ".join(_short(gradient) for gradient in kept)
        raise Wrong(f"{case}: from {ours} {said}", _mean_hint(found, values, rows))
    if not all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(kept, brought, strict=True)
    ):
        raise Wrong(f"{case}: the gradients that were brought have changed", "Who else needs them?")


def _short(values: Tensor, digits: int = 3) -> str:
    return "[" + ", ".join(f"{value:.{digits}g}" for value in values.tolist()) + "]"


def _mean_hint(found: Tensor, values: list[Tensor], rows: list[int]) -> str:
    """The question that fits a wrong mean; the mistakes are tried one after another."""
    total, filled = sum(rows), [value for value, n in zip(values, rows, strict=True) if n]
    weighted = sum(value * n for value, n in zip(values, rows, strict=True))
    mistakes = {
        "That is a mean of means. Whose rows weigh too much in it?": [
            sum(filled) / len(filled),
            sum(filled) / len(rows),
        ],
        "That is a sum of means. How large does it get with more devices?": [sum(filled)],
        "That is the gradient of the sum over all rows. And of their mean?": [weighted],
        "Right weights, wrong divisor: what do the weights add up to?": [
            weighted / len(rows),
            weighted / max(rows),
            weighted / total / len(rows),
        ],
    }
    if found.isnan().any():
        return "What is 0 times nan? Who brings nothing should not be asked."
    for question, wrong in mistakes.items():
        if any(torch.allclose(found.double(), each, rtol=1e-6) for each in wrong):
            return question
    return "A device with n rows stands for n rows out of all. What is its weight?"


@exercise("02.3", "bound the staleness", file="exercise_02_3.py")
def check_02_3() -> list[str]:
    """Who may start, in trainings played through; then a real server behind the gate."""
    for case in probe("probe_02_3.py", 1):
        _check_answer(**{key: value for key, value in case.items() if key != "rank"})
    files.write_missing("parameter_server.py")
    for bound in (0, 2):
        (case,) = probe("probe_02_3_served.py", 4, bound, timeout=60)
        _check_served(case["bound"], case["steps"], case["staleness"])
    return [
        "bounds of 0, 1 and 3, played through: nobody is more than the bound ahead",
        "nobody waits who need not, and nobody for a worker that has left",
        "with a real server and a slow worker: staleness at most (N - 1)(2s + 1)",
    ]


def _check_answer(
    bound: int,
    pushes: list[list[int]],
    gone: list[int],
    worker: int,
    answer: Any,
    again: Any,
    kind: str,
) -> None:
    counts = dict(pushes)
    lead = counts[worker] - min(counts.values())
    state = ", ".join(f"worker {each}: {count}" for each, count in pushes)
    where = f"bound {bound}; pushes so far: {state}" + f"; gone: {gone}" * bool(gone)
    if kind != "bool":
        raise Wrong(f"{where}. may_start({worker}) returned a {kind}, expected a bool", "")
    if answer != again:
        found = f"{where}. may_start({worker}) said {answer}, and asked again {again}"
        raise Wrong(found, "The server asks as often as it likes. Does asking change anything?")
    if answer != (lead <= bound):
        found = f"{where}. may_start({worker}) said {answer}, expected {lead <= bound}"
        raise Wrong(found, _gate_hint(bound, counts, gone, lead, answer))


def _gate_hint(bound: int, counts: dict[int, int], gone: list[int], lead: int, said: bool) -> str:
    """The question that fits a wrong answer."""
    if not any(counts.values()) and not gone:
        return "Nobody has pushed yet. If nobody may start, who ever will?"
    if gone and not said:
        return "Who has left pushes no more. For whom do the others still wait?"
    if said and lead == bound + 1:
        return f"It is {lead} ahead of the slowest already. How far will it be after this step?"
    if said:
        return "Ahead of whom? Not of the fastest or of the mean: of the slowest."
    if lead == bound > 0:
        return f"{lead} ahead is still allowed: the bound is {bound}, and it may be reached."
    return "Compare this worker's pushes with those of the slowest, nothing else."


def _check_served(bound: int, steps: int, staleness: list[list[int]]) -> None:
    limit = (len(staleness) - 1) * (2 * bound + 1)
    worst = max(max(each) for each in staleness)
    if steps != SERVED_STEPS or worst > limit:
        raise Wrong(
            f"a real server with bound {bound}: {steps} steps, staleness up to {worst}, "
            f"expected {SERVED_STEPS} steps and at most {limit}",
            "Does `pushed` count each worker for itself?",
        )
