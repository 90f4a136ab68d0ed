"""01.2: three new operations."""

from collections.abc import Callable
from typing import Any

import torch

from course_utils.checking.compare import text
from course_utils.checking.findings import random_values
from course_utils.checking.values import close
from lessons.nb01.beside_torch import compare

TITLE = "three new operations"
PROVEN = (
    "sigmoid, maximum and take: values, gradients and second derivatives equal torch's",
    "also for x = -1000, for equal inputs, for a row taken three times, in two dtypes",
)
WITHOUT = ("autograd", "hessian", "jacobian", "jacrev", "jacfwd", "jvp", "vjp", "linearize")
OURS = '''"""Three operations for the tape."""

import torch
from tape import Variable, record


def sigmoid(x: Variable) -> Variable:
    """1 / (1 + exp(-x)), of any shape."""
    r = record(x.value.sigmoid(), [x], lambda dL_dr: [dL_dr * r * (1 - r)])  # does not overflow
    return r


def maximum(a: Variable, b: Variable) -> Variable:
    """The larger of a and b, number by number; equal numbers share the gradient."""
    share = (a.value > b.value) + 0.5 * (a.value == b.value)  # of the gradient, for a
    return a * share + b * (1 - share)


def take(x: Variable, index: torch.Tensor) -> Variable:
    """Rows of x: (n, d), (m,) -> (m, d)."""
    chosen = torch.nn.functional.one_hot(index, x.shape[0]).to(x.value)  # (m, n)
    return Variable(chosen) @ x  # its gradient, chosen.mT @ dL_dr, sums rows that were taken twice
'''


def cases(sigmoid: Callable, maximum: Callable, take: Callable) -> None:
    """Values, gradients and second derivatives beside torch's."""
    for dtype in (torch.float64, torch.float32):
        kind = {"hint": hint("sigmoid"), "dtype": dtype}
        compare("sigmoid([-2, 0, 1.5])", sigmoid, torch.sigmoid, x=[-2.0, 0.0, 1.5], **kind)
        compare("sigmoid([-1000, 1000])", sigmoid, torch.sigmoid, x=[-1000.0, 1000.0], **kind)
        block = random_values(1, 2, 3, dtype=torch.float64).cpu().tolist()
        compare("sigmoid of random values, (2, 3)", sigmoid, torch.sigmoid, x=block, **kind)
        ends = {"a": [1.0, 5.0, 2.0], "b": [3.0, 4.0, 2.0], "hint": hint("maximum"), "dtype": dtype}
        compare("maximum([1, 5, 2], [3, 4, 2])", maximum, torch.maximum, **ends)
        five = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.5, 0.3], [9.1, -2.7]]
        for rows, index in ((five[:3], [2, 0, 2, 2]), (five, [2, 0, 2, 2]), (five, [4])):
            compare(
                f"take({text(rows)}, {index})",
                take,
                lambda x, i: x[i],
                hint("take"),
                dtype=dtype,
                x=rows,
                index=torch.tensor(index),
            )


def hint(operation: str) -> Callable:
    """The question that fits a wrong value of an operation."""

    def question(aspect: str, got: Any, expected: Any) -> str:
        if aspect.startswith("the second") and "nan" not in text(got):
            return "Is every step of propagate an operation on Variables? The tape sees no other."
        if got is None:
            return "None means that L does not depend on it. Is your operation on the tape?"
        if "nan" in text(got):
            return "Is that 0 times infinity? Which number on the way gets too large?"
        if aspect == "the value":
            return "Work it out by hand for these numbers. Where does your code differ?"
        if operation == "sigmoid":
            return "Write the derivative with the result s alone. At x = 0, s = 1/2: what is it?"
        if operation == "take":
            return "Row 2 was taken three times. What is the gradient of a value used three times?"
        if close(got[:2], expected[:2]):
            return "The first two are right. In the third, a and b are equal: what does each get?"
        return "Which of the two came out at each position? Only that one affects the result."

    return question


REPORT = '\nfrom nbtorchrun.worker import report\nreport(case="mixed", loss=0.5)\n'
SIGMOID = "dL_dr * r * (1 - r)"

TEXT = '"""Three operations for the tape."""'

WRONG = [
    (
        "the derivative with x for s",
        SIGMOID,
        "dL_dr * x * (1 - x)",
        "with the result s alone",
    ),
    ("a factor is missing", SIGMOID, "dL_dr * r", "At x = 0, s = 1/2"),
    (
        "overflows",
        "r = record(",
        "return 1 / (1 + (-x).exp())\nr = record(",
        "0 times infinity",
    ),
    (
        "values in place of Variables",
        SIGMOID,
        "Variable(dL_dr.value * r.value * (1 - r.value))",
        "an operation on Variables",
    ),
    (
        "not on the tape",
        "return a * share",
        "return Variable(a.value * share)",
        "the gradient of a is None",
    ),
    (
        "of equal ones the second gets all",
        " + 0.5 * (a.value == b.value)",
        ".double()",
        "In the third, a and b are equal",
    ),
    ("the smaller one", "a.value > b.value", "a.value < b.value", "Work it out by hand"),
    (
        "a row taken again replaces its gradient",
        "return Variable(chosen) @ x",
        "def rule(dL_dr):\n"
        "    out = torch.zeros(x.shape, dtype=x.value.dtype)\n"
        "    out[index] = dL_dr.value\n"
        "    return [Variable(out)]\n"
        "return record(x.value[index], [x], rule)",
        "Row 2 was taken three times",
    ),
    (
        "as many rows as the largest index",
        "one_hot(index, x.shape[0])",
        "one_hot(index)",
        "From workers/exercise_01_2.py, line",
    ),
    (
        "the index is overwritten",
        "one_hot(index,",
        "one_hot(kept,",
        "chosen =",
        "kept = index.clone()\nindex.zero_()\nchosen =",
        "changed index",
    ),
    (
        "values on the meta device",
        "->",
        "lambda r: setattr(r, 'value', r.value.to('meta')) or r",
        "sigmoid([-2, 0, 1.5]): the value",
    ),
    (
        "sparse values",
        "->",
        "lambda r: setattr(r, 'value', r.value.to_sparse()) or r",
        "sigmoid([-2, 0, 1.5]): the value",
    ),
    (
        "values of numpy",
        "->",
        "lambda r: setattr(r, 'value', r.value.numpy()) or r",
        "sigmoid([-2, 0, 1.5]): the value",
    ),
    (
        "no values",
        "->",
        "lambda r: setattr(r, 'value', None) or r",
        "sigmoid([-2, 0, 1.5]): the value",
    ),
    (
        "double precision, always",
        "x.value.sigmoid()",
        "x.value.double().sigmoid()",
        "expected float32",
    ),
]
RIGHT = [
    ("it reports values of its own", TEXT, f"{TEXT}{REPORT}"),
    (
        "built from what the tape has",
        """
import torch
from tape import Variable, record

def sigmoid(x):
    s = x.value.sigmoid()
    r = record(s, [x], lambda dL_dr: [dL_dr * (r - r * r)])
    return r

def maximum(a, b):
    more, less = (a.value > b.value).to(a.value), (a.value < b.value).to(a.value)
    half = (1 - more - less) / 2
    return a * (more + half) + b * (less + half)

def take(x, index):
    return Variable(torch.eye(x.shape[0], dtype=x.value.dtype)[index]) @ x
""",
    ),
]
