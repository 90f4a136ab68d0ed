"""01.1: the backward pass."""

from collections.abc import Callable
from typing import Any

import tape
import torch

from course_utils.checking.compare import SPECIAL, Wrong, article, expect, kind, name_of, plain
from course_utils.checking.findings import random_values
from course_utils.checking.values import is_tensor, listed

TITLE = "the backward pass"
PROVEN = (
    "every use of a variable counts, and entries that lead nowhere are skipped",
    "also if the tape continues after the result; and the gradients can be differentiated",
)
WITHOUT = (
    "grad",
    "autograd",
    "hessian",
    "jacobian",
    "jacrev",
    "jacfwd",
    "jvp",
    "vjp",
    "linearize",
)
OURS = '''\
import torch
from tape import Variable, gradient_tape  # this very file, when the answer is a part of it


def grad(result, wanted):
    """The gradient of `result` for each Variable in `wanted`; None where there is no path to it."""
    gradients = {result.name: Variable(torch.ones_like(result.value))}  # d result / d result = 1
    for entry in reversed(list(gradient_tape)):  # a copy: propagate adds entries
        if (arriving := gradients.get(entry.outputs[0])) is None:
            continue  # this line did not help to compute the result
        for name, part in zip(entry.inputs, entry.propagate([arriving]), strict=True):
            gradients[name] = gradients[name] + part if name in gradients else part
    return [gradients.get(each.name) for each in wanted]
'''
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


def cases(grad: Callable) -> None:
    """Graphs on which a backward pass may go wrong, one after another."""
    # Only + and * are on the tape when the student writes grad.
    random = [tuple(random_values(seed, 3, dtype=torch.float64).tolist()) for seed in (0, 1)]
    for describe, build, question in GRAPHS:
        for values in ((2.0, 3.0, 5.0), *random):
            where = "a, b, c random" if values in random else "a, b, c = 2, 3, 5"
            look(grad, f"{where}, result = {describe}:", build, values, question)
    look_at_second_derivative(grad)


def look(grad: Callable, where: str, build: Callable, values: tuple, question: str) -> None:
    """One graph, with one set of numbers."""
    given = leaves(values)
    found, expected = judged(grad, where, *build(*given)), torchs(build, values)
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


def look_at_second_derivative(grad: Callable) -> None:
    """A gradient is a Variable on the tape; a later call leaves it as it was."""
    a, *_ = leaves((2.0, 3.0, 5.0))
    where = "a = 2, result = a * a * a:"
    (first,) = judged(grad, where, a * a * a, [a])
    expect(f"{where} the gradient is", numbers([first]), [12.0])
    (second,) = judged(grad, f"{where} for the second derivative", first, [a])
    hint = "Did you add Variables, or values?"
    expect(f"{where} the second derivative is", numbers([second]), [12.0], otherwise=hint)
    hint = "The caller may still hold the first answer. Does yours change a Variable in place?"
    expect(f"{where} after it, the first is", numbers([first]), [12.0], otherwise=hint)


def refuse_unskipped(where: str) -> None:
    """Name the mistake."""
    said = f"{where} grad called propagate on a line whose output has no gradient"
    raise Wrong(said, "Which lines have no gradient at their output? Skip them.")


def judged(grad: Callable, where: str, result: Any, wanted: Any) -> list:
    """What the student's function gives, once it is known to be gradients of the right kind."""
    before, early = list(tape.gradient_tape), []

    def spied(entry: Any) -> Any:
        def propagate(gradients: list) -> list:
            if not isinstance(gradients, list) or len(gradients) != 1:
                hint = "propagate takes a list: entry.propagate([gradient])."
                raise Wrong(f"{where} grad called propagate({gradients!r})", hint)
            if gradients[0] is None:
                early.append(entry)
                refuse_unskipped(where)
            return entry.propagate(gradients)

        return entry._replace(propagate=propagate)

    spies = [spied(entry) for entry in before]
    tape.gradient_tape[:] = spies
    answer = grad(result, wanted)
    found = listed(answer)
    if list(tape.gradient_tape[: len(before)]) != spies:
        hint = "Other code reads it too. Go through it backwards without reversing it."
        raise Wrong(f"{where} grad changed the tape: lines are gone, or in another order", hint)
    if early:  # and an `except` of the student's has caught it
        refuse_unskipped(where)
    if found is None or len(found) != len(wanted):
        got = kind(answer) if found is None else f"{kind(answer)} of {len(found)}"
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
    return found


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


ONE = "Variable(torch.ones_like(result.value))"
ORDER = "reversed(list(gradient_tape))"
ADD = "gradients[name] = gradients[name] + part if name in gradients else part"
EACH = "gradients.get(each.name)"
ALL = f"[{EACH} for each in wanted]"

WRONG = [
    ("the last use wins", ADD, "gradients[name] = part", "the gradient that came first?"),
    ("forwards", ORDER, "list(gradient_tape)", "From which end"),
    (
        "the inputs overwritten",
        "in wanted]",
        "in wanted if each.value.mul_(2) is not None]",
        "grad changed a value of a, b or c",
    ),
    ("nothing skipped", "is None:", "is False:", "Skip them"),
    (
        "nothing skipped, and no word of it",
        "if (arriving := gradients.get(entry.outputs[0])) is None:",
        "try:\n"
        "    parts = entry.propagate([gradients.get(entry.outputs[0])])\n"
        "except BaseException:",
        "entry.propagate([arriving])",
        "parts",
        "Skip them",
    ),
    (
        "zero where there is no path",
        EACH,
        "gradients.get(each.name, each * Variable(0.0))",
        "What should you return for c",
    ),
    (
        "added in place",
        ADD,
        "if name in gradients:\n"
        "    gradients[name].value += part.value\n"
        "else:\n"
        "    gradients[name] = part",
        "Who else sees it when you change it?",
    ),
    (
        "values added",
        "gradients[name] + part",
        "Variable(gradients[name].value + part.value)",
        "Did you add Variables, or values?",
    ),
    (
        "the result is the last on the tape",
        "{result.name:",
        "{gradient_tape[-1].outputs[0]:",
        "How do you recognise",
    ),
    (
        "turned around",
        ORDER,
        "gradient_tape.reverse() or list(gradient_tape)",
        "changed the tape",
    ),
    (
        "a 1 of single precision",
        ONE,
        "Variable(1.0)",
        "Does the 1 that you begin with have the result's dtype?",
    ),
    (
        "begins with the result's value",
        ONE,
        "result",
        "which gradient do you start with?",
    ),
    ("no list", "[arriving]", "arriving", "propagate takes a list"),
    ("all gradients", ALL, "gradients", "expected a list of 2"),
    (
        "the number 0 where there is no path",
        EACH,
        "gradients.get(each.name, 0)",
        "returned an int as a gradient, expected a Variable or None",
    ),
    ("tensors", EACH, "gradients[each.name].value", "that can be differentiated again"),
    (
        "ours",
        "from tape import grad as ours\n\n\ndef grad(result, wanted):\n"
        "    return ours(result, wanted)\n",
        "uses grad, which does what you are asked to write",
    ),
]
RIGHT = [
    ("a tuple", ALL, f"tuple({EACH} for each in wanted)"),
    ("a generator", ALL, f"({EACH} for each in wanted)"),
    ("a default for what is not there", "if (", "if not (", "is None:", ":"),
    (
        "a variable of the function's name",
        "(arriving := gradients",
        "(grad := gradients",
        "[arriving]",
        "[grad]",
    ),
    ("by index", ORDER, "gradient_tape[len(gradient_tape) - 1 :: -1]"),
]
