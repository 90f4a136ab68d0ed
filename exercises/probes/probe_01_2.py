"""Calls the student's sigmoid, maximum and take, and torch's."""

from typing import Any

import torch

from course_utils.checking.compare import text
from course_utils.checking.findings import random_values
from course_utils.checking.values import close

from beside_torchs_autograd import compare
from exercise_01_2 import maximum, sigmoid, take


def hint(operation: str):
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
