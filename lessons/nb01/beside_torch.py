"""What 01.2 and 01.4 share: comparing a student's operation with PyTorch's."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.calls import random_state, same
from course_utils.checking.compare import (
    SPECIAL,
    TOLERANCE,
    Wrong,
    article,
    expect,
    kind,
    name_of,
    plain,
)
from course_utils.checking.values import is_tensor

Hint = Callable[[str, Any, Any], str]  # of an aspect, what was found, and what was expected


def compare(
    call: str,
    ours: Callable,
    theirs: Callable,
    hint: Hint,
    *,
    dtype: torch.dtype = torch.float64,
    second: bool = True,
    **inputs: Any,
) -> None:
    """Compare value, gradients and second derivatives of an operation with torch's.

    Args:
        call: how the case is shown to the student.
        ours: the operation on Variables of tape.py.
        theirs: the same on tensors.
        hint: the question that fits a wrong value.
        dtype: of the inputs that are differentiated.
        second: whether second derivatives are asked for.
        inputs: by name; nested lists are differentiated, a tensor is passed on as it is.
    """
    import tape  # a worker file: the student's own file imports it, so it is there by now

    tape.reset_tape()
    expected = _derivatives(theirs, _grad, _given(inputs, dtype, _leaf), second)
    given, state = _given(inputs, dtype, tape.Variable), random_state()
    found = _derivatives(ours, tape.grad, given, second, (dtype, expected[0].shape))
    name = name_of(dtype)
    leaves = [name for name, value in inputs.items() if isinstance(value, list)]
    if not isinstance(found[0], tape.Variable):
        asked = "Return a Variable: every operation on Variables gives one, and `record` does."
        raise Wrong(f"{call} returned {kind(found[0])}, expected a Variable", asked)
    for aspect, got, right in zip(_aspects(leaves), found, expected, strict=False):
        where, values, wanted = f"{call}: {aspect} is", _plain(got), plain(right)
        question = hint(aspect, values, wanted)
        held = getattr(got, "value", got)
        if got is not None and not is_tensor(held):
            raise Wrong(f"{call}: {aspect} holds {kind(held)}, expected a Tensor", SPECIAL)
        expect(where, values, wanted, {question: values}, tolerance=TOLERANCE[name])
        if got is not None and held.dtype != dtype:
            other = article(name_of(held.dtype))
            raise Wrong(f"{where} {other}, expected {name}", "Which line sets it?")
    for now, before, argument in zip(
        given, _given(inputs, dtype, lambda x: x), inputs, strict=True
    ):
        if not same(getattr(now, "value", now), before):
            raise Wrong(f"{call} changed {argument}", "The caller may still need it.")
    if random_state() != state:
        raise Wrong(f"{call} changed the global random state", "Nothing here is random.")


def _given(inputs: dict[str, Any], dtype: torch.dtype, leaf: Callable) -> list[Any]:
    return [
        leaf(torch.tensor(value, dtype=dtype)) if isinstance(value, list) else value.clone()
        for value in inputs.values()
    ]


def _aspects(leaves: list[str]) -> list[str]:
    gradients = [f"the gradient of {name}" for name in leaves]
    return ["the value", *gradients, *(f"the second derivative of {name}" for name in leaves)]


def _derivatives(
    f: Callable, grad: Callable, given: list[Any], second: bool, like: tuple | None = None
) -> list[Any]:
    """The value; the gradients of its weighted sum; the gradients of their squared length.

    The value alone, where it is no Variable with a tensor of the dtype and shape `like`.
    """
    leaves = [x for x in given if not torch.is_tensor(x) or x.requires_grad]
    result = f(*given)
    value = getattr(result, "value", result)
    if like is not None and not _is_alike(result, *like):
        return [result]
    shape = tuple(value.shape)
    weights = torch.arange(1, 1 + math.prod(shape), dtype=value.dtype).reshape(shape) / 3
    gradients = grad((result * result * weights).sum(), leaves)
    if any(gradient is None for gradient in gradients):
        return [result, *gradients, *(None for _ in leaves)]
    if not second:
        return [result, *gradients]
    length = sum((gradient * gradient).sum() for gradient in gradients)
    return [result, *gradients, *grad(length, leaves)]


def _is_alike(result: Any, dtype: torch.dtype, shape: torch.Size) -> bool:
    value = getattr(result, "value", None)
    return is_tensor(value) and value.dtype == dtype and value.shape == shape


def _leaf(value: Tensor) -> Tensor:
    return value.requires_grad_()


def _grad(loss: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, leaves, create_graph=True)


def _plain(x: Any) -> Any:
    """A tensor or Variable as nested lists."""
    return plain(getattr(x, "value", x))
