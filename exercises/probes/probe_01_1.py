"""Calls the student's grad on graphs on which a backward pass may go wrong.

Only + and * are on the tape when the student writes grad.
"""

from collections.abc import Callable
from typing import Any

import tape
import torch

from course_utils.checking.compare import SPECIAL, Wrong, article, expect, kind, name_of, plain
from course_utils.checking.findings import judging, random_values
from course_utils.checking.values import is_tensor

from exercise_01_1 import grad

FROM_WHICH_END = "From which end do you read the tape, and which gradient do you start with?"
clear = getattr(tape, "reset_tape", tape.gradient_tape.clear)


def unused(a: Any, b: Any, c: Any) -> tuple:
    """On the tape, but not part of the result: b * c."""
    b * c
    return a * b, [a, b, c]


def goes_on(a: Any, b: Any, c: Any) -> tuple:
    """What is computed from the result afterwards is not part of it."""
    result = a * b
    result * c
    return result, (b, a)


# What is shown; what builds the result and says what is wanted; a question.
GRAPHS: list[tuple[str, Callable, str]] = [
    ("a * b", lambda a, b, c: (a * b, [a, b]), FROM_WHICH_END),
    (
        "(a + b) * a",
        lambda a, b, c: ((a + b) * a, [a, b]),
        "a is used on two lines. What happens to the gradient that came first?",
    ),
    (
        "a * b, with b * c on the tape",
        unused,
        "No path leads from c to the result. What should you return for c?",
    ),
    (
        "a * a + a",
        lambda a, b, c: (a * a + a, [a]),
        "a is used three times here. What happens to the gradients of the other uses?",
    ),
    (
        "a * c + (a + b)",
        lambda a, b, c: (a * c + (a + b), [a, b, c]),
        "a + b passes the same Variable to a and to b. Who else sees it when you change it?",
    ),
    (
        "a * b, and result * c on the tape after it",
        goes_on,
        "The result need not be the last on the tape. How do you recognise it?",
    ),
    (
        "a itself, which no operation made",
        lambda a, b, c: (a, [b, a]),
        "Here the result itself is wanted too. What is its gradient with respect to itself?",
    ),
]


def _not_skipped(where: str) -> None:
    said = f"{where} grad called propagate on a line whose output has no gradient"
    raise Wrong(said, "Which lines have no gradient at their output? Skip them.")


def judged(where: str, result: Any, wanted: Any) -> list:
    """What the student's function gives, once it is known to be gradients of the right kind."""
    before, early = list(tape.gradient_tape), []

    def spied(entry: Any) -> Any:
        def propagate(gradients: list) -> list:
            if not isinstance(gradients, list) or len(gradients) != 1:
                hint = "propagate takes a list: entry.propagate([gradient])."
                raise Wrong(f"{where} grad called propagate({gradients!r})", hint)
            if gradients[0] is None:
                early.append(entry)
                _not_skipped(where)
            return entry.propagate(gradients)

        return entry._replace(propagate=propagate)

    spies = [spied(entry) for entry in before]
    tape.gradient_tape[:] = spies
    found = grad(result, wanted)
    if list(tape.gradient_tape[: len(before)]) != spies:
        hint = "Other code reads it too. Go through it backwards without reversing it."
        raise Wrong(f"{where} grad changed the tape: lines are gone, or in another order", hint)
    if early:  # and an `except` of the student's has caught it
        _not_skipped(where)
    listed = isinstance(found, (list, tuple))
    if not listed or len(found) != len(wanted):
        got = f"{kind(found)} of {len(found)}" if listed else kind(found)
        said = f"{where} grad returned {got}, expected a list of {len(wanted)}: one for each wanted"
        raise Wrong(said, "In which order does the caller expect them?")
    for gradient in found:
        if not isinstance(gradient, (tape.Variable, type(None))):
            said = (
                f"{where} grad returned {kind(gradient)} as a gradient, expected a Variable or None"
            )
            hint = "Without a path it is None, else a Variable that can be differentiated again."
            raise Wrong(said, hint)
        if gradient is not None and not is_tensor(gradient.value):
            said = f"{where} a gradient is a Variable that holds {kind(gradient.value)}"
            raise Wrong(f"{said}, expected a Tensor", SPECIAL)
    return list(found)


def numbers(gradients: list) -> list:
    """Their values, None where there is none."""
    return [None if x is None else x.value.tolist() for x in gradients]


def leaves(values: tuple[float, ...]) -> list:
    """A new tape, and a, b, c on it in float64."""
    clear()
    tensors = torch.tensor(values, dtype=torch.float64)
    return [tape.Variable(value, name) for name, value in zip("abc", tensors, strict=True)]


def torchs(build: Callable, values: tuple[float, ...]) -> list:
    """The gradients by torch's own autograd."""
    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in values]
    return list(map(plain, torch.autograd.grad(*build(*tensors), allow_unused=True)))


random = [tuple(random_values(seed, 3, dtype=torch.float64).tolist()) for seed in (0, 1)]
for describe, build, question in GRAPHS:
    for values in ((2.0, 3.0, 5.0), *random):
        given = leaves(values)
        where = "a, b, c = 2, 3, 5" if values == (2.0, 3.0, 5.0) else "a, b, c random"
        where = f"{where}, result = {describe}:"
        with judging():
            found, expected = judged(where, *build(*given)), torchs(build, values)
            if any(x is None and y is not None for x, y in zip(found, expected, strict=True)):
                question = FROM_WHICH_END  # a path leads there
            expect(f"{where} the gradients are", numbers(found), expected, otherwise=question)
            for gradient in found:
                if gradient is not None and gradient.value.dtype != torch.float64:
                    other = article(name_of(gradient.value.dtype))
                    said = f"{where} a gradient is {other}, expected a float64 like the result"
                    raise Wrong(said, "Does the 1 that you begin with have the result's dtype?")
            if numbers(given) != list(values):
                raise Wrong(f"{where} grad changed a value of a, b or c", "Make new Variables.")
with judging():
    a, *_ = leaves((2.0, 3.0, 5.0))
    where = "a = 2, result = a * a * a:"
    (first,) = judged(where, a * a * a, [a])
    expect(f"{where} the gradient is", numbers([first]), [12.0])
    (second,) = judged(f"{where} for the second derivative", first, [a])
    hint = "Did you add Variables, or values?"
    expect(f"{where} the second derivative is", numbers([second]), [12.0], otherwise=hint)
