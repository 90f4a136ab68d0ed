"""Calls the student's side_by_side with weights and biases, and judges the order of the rows."""

import torch

from course_utils.exercises.compare import count, judge
from course_utils.exercises.findings import judging, observe, random_values

from exercise_06_3 import side_by_side

for heads, shape in ((2, (4,)), (2, (4, 3)), (3, (6, 6)), (4, (4,)), (1, (3, 3)), (12, (24, 5))):
    for dtype in (torch.float32, torch.float64):
        three = [random_values(seed, *shape, dtype=dtype) for seed in (1, 2, 3)]
        size = shape[0] // heads
        rows = [each[h * size :][:size] for h in range(heads) for each in three]
        crosswise = torch.stack(three, dim=1).flatten(0, 1)  # row by row, whatever the heads
        mistakes = [
            ("Cut yours in two: does the first half hold the v of head 0?", torch.cat(three)),
            ("The D/H rows of a head's q stay together.", crosswise),
            ("Rounded: where does yours take another dtype?", torch.cat(rows).float()),
        ]
        right = torch.cat(rows)  # before the call, which might change what it is given
        found = observe(side_by_side, *three, heads, names=("q", "k", "v"))
        with judging():
            call = f"{count(heads, 'head')}, three tensors {shape}: side_by_side"
            hint = "D/H rows of q, then of k, then of v, for one head after the other."
            judge(call, found, right, mistakes, hint, dtype=dtype)
