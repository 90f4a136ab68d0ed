"""What the probes of notebook 01 share: an operation of the student beside PyTorch's."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.exercises.findings import report


def compare(call: str, ours: Callable, theirs: Callable, **inputs: Any) -> None:
    """Report value, gradients and second derivatives of an operation, and what torch makes of it.

    Args:
        call: how the case is shown to the student.
        ours: the operation on Variables of tape.py.
        theirs: the same on tensors.
        inputs: by name; a list of floats is differentiated, a tensor is passed on as it is.
    """
    import tape

    tape.trace(False)
    tape.reset_tape()
    for aspect, got, expected in zip(
        _aspects(inputs),
        _derivatives(ours, tape.grad, tape.Variable, inputs),
        _derivatives(theirs, _grad, _leaf, inputs),
        strict=True,
    ):
        report(call=call, aspect=aspect, got=got, expected=expected)


def _aspects(inputs: dict[str, Any]) -> list[str]:
    leaves = [name for name, value in inputs.items() if isinstance(value, list)]
    gradients = [f"the gradient of {name}" for name in leaves]
    return ["the value", *gradients, *(f"the second derivative of {name}" for name in leaves)]


def _derivatives(f: Callable, grad: Callable, leaf: Callable, inputs: dict[str, Any]) -> list[Any]:
    """The value; the gradients of its weighted sum; the gradients of their squared length."""
    given = [
        leaf(torch.tensor(value, dtype=torch.float64)) if isinstance(value, list) else value
        for value in inputs.values()
    ]
    leaves = [x for x, value in zip(given, inputs.values(), strict=True) if isinstance(value, list)]
    result = f(*given)
    shape = tuple(result.shape)
    weights = torch.arange(1, 1 + math.prod(shape), dtype=torch.float64).reshape(shape)
    gradients = grad((result * result * weights).sum(), leaves)
    if any(each is None for each in gradients):
        return [_plain(result), *map(_plain, gradients), *(None for _ in leaves)]
    length = sum((each * each).sum() for each in gradients)
    return [_plain(result), *map(_plain, gradients), *map(_plain, grad(length, leaves))]


def _leaf(value: Tensor) -> Tensor:
    return value.requires_grad_()


def _grad(loss: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, leaves, create_graph=True)


def _plain(x: Any) -> Any:
    """A tensor or Variable as nested lists."""
    return None if x is None else getattr(x, "value", x).tolist()
