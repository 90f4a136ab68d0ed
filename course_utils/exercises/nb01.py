"""Notebook 01, tape autograd: operations, the backward pass, curvature, a planted mistake."""

from collections.abc import Callable
from typing import Any

import torch

from course_utils import paths
from course_utils.exercises.calls import called
from course_utils.exercises.checking import exercise, probe
from course_utils.exercises.compare import Wrong, expect, kind
from course_utils.notebook import cells, files

LEAVES = {"a": 2.0, "b": 3.0, "c": 5.0}
BY_TORCH = ("autograd", "hessian", "jacobian", "jacrev", "jacfwd", "jvp", "vjp", "linearize")


@exercise("01.1", "three new operations", file="exercise_01_1.py", without=BY_TORCH)
def check_01_1() -> list[str]:
    """Values, gradients and second derivatives beside torch's."""
    probe("probe_01_1.py", 1)
    return [
        "sigmoid, maximum and take: values, gradients and second derivatives equal torch's",
        "also for x = -1000, for equal inputs, for a row taken three times, in two dtypes",
    ]


@exercise("01.2", "the backward pass")
def check_01_2(my_grad: Callable) -> list[str]:
    """Graphs on which a backward pass may go wrong, one after another."""
    tape = files.load_worker("tape.py")
    tape.trace(False)
    for describe, build, expected, question in GRAPHS:
        for start in (1.0, 2.5):
            tape.reset_tape()
            leaves = {name: tape.Variable([value], name=name) for name, value in LEAVES.items()}
            loss, desired = build(**leaves)
            one = tape.Variable(torch.full_like(loss.value, start))
            found = _numbers(_gradients(my_grad, tape, describe, loss, desired, one))
            times = [None if each is None else [start * each[0]] for each in expected]
            where = f"with a, b, c = 2, 3, 5 and L = {describe}: the gradients are"
            hint = question if start == 1 else f"`one` is {start:g} here. Does yours begin with it?"
            expect(where, found, times, otherwise=hint)
    _check_second(my_grad, tape)
    return [
        "every use of a variable counts, what L does not depend on gives None",
        "also where the tape goes on after L; and the gradients can be differentiated again",
    ]


def _used_after_sharing(a: Any, b: Any, c: Any) -> tuple[Any, list[Any]]:
    product = a * c
    return (product + (a + b)).sum(), [a, b, c]


def _unused(a: Any, b: Any, c: Any) -> tuple[Any, list[Any]]:
    b * c  # on the tape, and no part of L
    return (a * b).sum(), [a, b, c]


def _goes_on(a: Any, b: Any, c: Any) -> tuple[Any, list[Any]]:
    loss = (a * b).sum()
    (loss * c).sum()  # made of L, and no part of it
    return loss, [b, a]


GRAPHS = [  # what is shown, a function that builds L and what is asked for, answer, question
    (
        "(a * b).sum()",
        lambda a, b, c: ((a * b).sum(), [a, b]),
        [[3.0], [2.0]],
        "From which end does the chain rule go through the tape, and with what does it begin?",
    ),
    (
        "(a * b).sum(), with b * c on the tape",
        _unused,
        [[3.0], [2.0], None],
        "No path leads from c to L. What is there to say of c, and what must be passed over?",
    ),
    (
        "(a * a + a).sum()",
        lambda a, b, c: ((a * a + a).sum(), [a]),
        [[5.0]],
        "a is used three times here. What becomes of the gradients of the other uses?",
    ),
    (
        "(a * c + (a + b)).sum()",
        _used_after_sharing,
        [[6.0], [1.0], [2.0]],
        "a + b gives one and the same Variable to a and to b. Who else sees it when you change it?",
    ),
    (
        "(a * b).sum(), and L * c on the tape after it",
        _goes_on,
        [[2.0], [3.0]],
        "L need not be the last on the tape. By what do you know it?",
    ),
]


def _gradients(
    my_grad: Callable, tape: Any, describe: str, loss: Any, desired: list, one: Any
) -> list:
    """What the student's function gives, once it is known to be gradients."""
    where = f"L = {describe}: it"
    hint = "Which entries have no gradient at their output? Pass over them."
    before = [_spied(entry, where, hint) for entry in tape.gradient_tape]
    tape.gradient_tape[:] = before
    given = (tape.gradient_tape, loss, desired, one)
    found = called(where, my_grad, *given, hint=hint, may_change=True)
    if tape.gradient_tape[: len(before)] != before:
        raise Wrong(
            f"{where} changed the tape: entries are gone, or in another order",
            "The tape is the caller's. Go through it backwards without turning it around.",
        )
    listed = isinstance(found, (list, tuple))
    if not listed or len(found) != len(desired):
        got = f"{kind(found)} of {len(found)}" if listed else kind(found)
        raise Wrong(
            f"{where} returned {got}, expected a list of {len(desired)}: "
            "one gradient for each of desired_results",
            "In which order does the caller expect them?",
        )
    # By their names: the student's tape.py may have been loaded at another time than ours.
    for each in found:
        if type(each).__name__ not in ("Variable", "NoneType"):
            raise Wrong(
                f"{where} returned {kind(each)} as a gradient, expected a Variable or None",
                "No path: None. Otherwise a Variable, so that it can be differentiated again.",
            )
    return list(found)


def _spied(entry: Any, where: str, hint: str) -> Any:
    """The entry, which says so when it is asked without a gradient."""

    def propagate(gradients: list) -> list:
        if all(each is None for each in gradients):
            raise Wrong(f"{where} called propagate where no gradient has come", hint)
        return entry.propagate(gradients)

    return entry._replace(propagate=propagate)


def _numbers(gradients: list) -> list:
    return [None if each is None else each.value.tolist() for each in gradients]


def _check_second(my_grad: Callable, tape: Any) -> None:
    tape.reset_tape()
    a = tape.Variable([2.0], name="a")
    loss = (a * a * a).sum()
    one = tape.Variable(torch.ones_like(loss.value))
    (first,) = _gradients(my_grad, tape, "(a * a * a).sum()", loss, [a], one)
    gradient = "the gradient of (a * a * a).sum()"
    second = _numbers(_gradients(my_grad, tape, gradient, first.sum(), [a], one))
    where = "L = (a * a * a).sum() at a = 2: the second derivative is"
    expect(where, second, [[12.0]], otherwise="Did you add Variables, or values?")


@exercise("01.3", "curvature without the matrix", file="exercise_01_3.py", without=BY_TORCH)
def check_01_3() -> list[str]:
    """The product, how often f was called, and how the tape grew with n."""
    small, large = (case["entries"] for case in probe("probe_01_3.py", 1)[:2])
    if large > small:
        raise Wrong(
            f"the tape has {small} entries for n = 3 and {large} for n = 30, expected the same",
            "Does yours build the matrix, row by row? Which number has H v as its gradient?",
        )
    return [
        "H v equals the product with torch's full Hessian, n = 3 and n = 30; 0 for a linear f",
        f"f called once, {large} operations on the tape for n = 3 and for n = 30",
    ]


@exercise("01.4", "find the mistake", file="exercise_01_4.py", without=BY_TORCH)
def check_01_4() -> list[str]:
    """The three operations beside torch's; to do while the file is as it was given."""
    answer = (paths.workers() / "exercise_01_4.py").read_text(encoding="utf-8")
    if answer == cells.sources()["exercise_01_4.py"]:
        raise NotImplementedError
    probe("probe_01_4.py", 1)
    return ["leaky_relu, log_softmax and rms_norm: values and gradients right, rows of any length"]
