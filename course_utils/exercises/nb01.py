"""Notebook 01, tape autograd: operations, the backward pass, curvature, a planted mistake."""

import math
from collections.abc import Callable
from typing import Any

import torch

from course_utils import paths
from course_utils.exercises.calls import called
from course_utils.exercises.checking import Wrong, exercise, probe
from course_utils.notebook import cells, files

BLIND = "Is every step of propagate an operation on Variables? The tape sees nothing else."


@exercise("01.1", "three new operations", file="exercise_01_1.py")
def check_01_1() -> list[str]:
    """Values, gradients and second derivatives beside torch's."""
    for case in probe("probe_01_1.py", 1):
        _check_derivative(case, _operation_hint)
    return [
        "sigmoid, maximum and take: values, gradients and second derivatives equal torch's",
        "also for x = -1000, for equal inputs, and for a row that is taken three times",
    ]


def _check_derivative(case: dict[str, Any], hint: Callable[[dict[str, Any]], str]) -> None:
    if _close(case["got"], case["expected"]):
        return
    found = f"{case['call']}: {case['aspect']} is {_text(case['got'])}"
    raise Wrong(f"{found}, expected {_text(case['expected'])}", hint(case))


def _close(got: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        same = isinstance(got, list) and len(got) == len(expected)
        return same and all(map(_close, got, expected))
    if got is None or expected is None:
        return got is expected
    return isinstance(got, float) and math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-9)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _operation_hint(case: dict[str, Any]) -> str:
    """The question that fits a wrong value of sigmoid, maximum or take."""
    operation, got = case["call"].partition("(")[0], case["got"]
    if case["aspect"].startswith("the second") and "nan" not in _text(got):
        return BLIND
    if got is None:
        return "None: L does not depend on it, says the tape. Is your operation on the tape?"
    if "nan" in _text(got):
        return "0 times infinity. Which number on the way is too large, and can you avoid it?"
    if case["aspect"] == "the value":
        return "Work it out by hand for these numbers. Where does yours part from it?"
    if operation == "sigmoid":
        return "Write the derivative with the result s alone. At x = 0, s = 1/2: what must it be?"
    if operation == "take":
        return "Row 2 was taken three times. What is the gradient of a value used three times?"
    if _close(got[:2], case["expected"][:2]):
        return "The first two are right. In the third a and b are equal: what does each get?"
    return "Whose number came out, at each position? Only that one has any influence."


@exercise("01.2", "the backward pass")
def check_01_2(my_grad: Callable) -> list[str]:
    """Graphs on which a backward pass may go wrong, one after another."""
    tape = files.load_worker("tape.py")
    tape.trace(False)
    for describe, build, expected, question in GRAPHS:
        tape.reset_tape()
        leaves = {name: tape.Variable([value], name=name) for name, value in LEAVES.items()}
        loss, desired = build(**leaves)
        found = _numbers(_gradients(my_grad, tape, describe, loss, desired))
        if not _close(found, expected):
            where = f"L = {describe}: gradients {_text(found)}, expected {_text(expected)}"
            raise Wrong(f"{where} (with a, b, c = 2, 3, 5)", question)
    _check_second(my_grad, tape)
    return [
        "every use of a variable counts, what L does not depend on gives None",
        "and the gradients can be differentiated again",
    ]


LEAVES = {"a": 2.0, "b": 3.0, "c": 5.0}


def _used_after_sharing(a: Any, b: Any, c: Any) -> tuple[Any, list[Any]]:
    product = a * c
    return (product + (a + b)).sum(), [a, b, c]


def _unused(a: Any, b: Any, c: Any) -> tuple[Any, list[Any]]:
    b * c  # on the tape, and no part of L
    return (a * b).sum(), [a, b, c]


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
]


def _gradients(my_grad: Callable, tape: Any, describe: str, loss: Any, desired: list) -> list:
    """What the student's function gives, once it is known to be gradients."""
    one = tape.Variable(torch.ones_like(loss.value))
    where = f"L = {describe}: it"
    hint = "Which entries have no gradient at their output? Pass over them."
    found = called(
        where, my_grad, tape.gradient_tape, loss, desired, one, hint=hint, may_change=True
    )
    listed = isinstance(found, (list, tuple))
    if not listed or len(found) != len(desired):
        got = f"{type(found).__name__} of {len(found)}" if listed else type(found).__name__
        raise Wrong(
            f"{where} returned a {got}, expected a list of {len(desired)}: "
            "one gradient for each of desired_results",
            "In which order does the caller expect them?",
        )
    # By their names: the student's tape.py may have been loaded at another time than ours.
    for kind in (type(each).__name__ for each in found):
        if kind not in ("Variable", "NoneType"):
            raise Wrong(
                f"{where} returned a gradient of type {kind}, expected a Variable or None",
                "No path: None. Otherwise a Variable, so that it can be differentiated again.",
            )
    return list(found)


def _numbers(gradients: list) -> list:
    return [None if each is None else each.value.tolist() for each in gradients]


def _check_second(my_grad: Callable, tape: Any) -> None:
    tape.reset_tape()
    a = tape.Variable([2.0], name="a")
    loss = (a * a * a).sum()
    (first,) = _gradients(my_grad, tape, "(a * a * a).sum()", loss, [a])
    gradient = "the gradient of (a * a * a).sum()"
    second = _numbers(_gradients(my_grad, tape, gradient, first.sum(), [a]))
    if not _close(second, [[12.0]]):
        found = f"L = (a * a * a).sum() at a = 2: the second derivative is {_text(second[0])}"
        raise Wrong(f"{found}, expected [12]", "Did you add Variables, or values?")


@exercise("01.3", "curvature without the matrix", file="exercise_01_3.py")
def check_01_3() -> list[str]:
    """The product, how often f was called, and how the tape grew with n."""
    cases = probe("probe_01_3.py", 1)
    for case in cases:
        _check_product(case)
    small, large = (case["entries"] for case in cases[:2])
    if large > small:
        raise Wrong(
            f"the tape has {small} entries for n = 3 and {large} for n = 30, expected the same",
            "Does yours build the matrix, row by row? Which number has H v as its gradient?",
        )
    return [
        "H v equals the product with torch's full Hessian, n = 3 and n = 30; 0 for a linear f",
        f"f called once, {large} operations on the tape for n = 3 and for n = 30",
    ]


def _check_product(case: dict[str, Any]) -> None:
    where = f"f {case['case']}, n = {case['n']}"
    if case["kind"] != "Tensor":
        question = "When is the gradient independent of x, and what is the curvature then?"
        raise Wrong(
            f"{where}: it gave a {case['kind']}, expected a Tensor",
            question if case["case"] == "linear" else "The caller wants the numbers.",
        )
    if case["calls"] != 1:
        raise Wrong(
            f"{where}: f was called {case['calls']} times, expected once",
            "No differences and no second graph: what did the first gradient leave on the tape?",
        )
    if not isinstance(case["answer"], list) or len(case["answer"]) != case["n"]:
        raise Wrong(
            f"{where}: the product is {_text(case['answer'])}, expected {case['n']} numbers",
            "H v is the gradient of a number. Of which?",
        )
    if not _close(case["answer"], case["expected"]):
        found = f"{where}: the product is {_text(case['answer'][:3])}"
        hints = {
            "gradient": "That is the gradient. One derivative more?",
            "gradient times v": "That is the gradient times v, number by number. And then?",
            "diagonal": "That uses the diagonal of H only. How does x1 change the slope along x2?",
            "ones": "That is H times ones. Where does v come in?",
        }
        fits = [hints[m] for m, value in case["mistakes"].items() if _close(case["answer"], value)]
        question = fits[0] if fits else "H v is the gradient of a number. Of which?"
        raise Wrong(f"{found}, expected {_text(case['expected'][:3])}", question)


@exercise("01.4", "find the mistake", file="exercise_01_4.py")
def check_01_4() -> list[str]:
    """The three operations beside torch's; to do while the file is as it was given."""
    answer = (paths.workers() / "exercise_01_4.py").read_text(encoding="utf-8")
    if answer == cells.sources()["exercise_01_4.py"]:
        raise NotImplementedError
    for case in probe("probe_01_4.py", 1):
        _check_derivative(case, _mend_hint)
    return ["leaky_relu, log_softmax and rms_norm: values, gradients, second derivatives right"]


def _mend_hint(case: dict[str, Any]) -> str:
    if case["aspect"] == "the value":
        return "The values were right before. What did you change?"
    if case["call"] != "rms_norm":
        return "This one was right before. What did you change?"
    if case["aspect"].startswith("the second"):
        return BLIND
    return "Change one x of a row a little: which results of that row change, and why?"
