"""Calls the student's side_by_side with weights and biases, and judges the order of the rows."""

import torch

from course_utils.checking.compare import count, judge
from course_utils.checking.findings import judging, observe, random_values

from exercise_06_4 import side_by_side

SIZES = (  # KV heads, query heads for each, numbers per head, what follows the rows
    *((2, 1, 2, ()), (2, 2, 2, (3,)), (3, 4, 2, (6,)), (4, 2, 1, ())),
    *((1, 3, 3, (3,)), (6, 2, 2, (5,))),
)
for kv_heads, each_has, size, rest in SIZES:
    for dtype in (torch.float32, torch.float64):
        rows = kv_heads * size
        q = random_values(1, each_has * rows, *rest, dtype=dtype)
        k, v = (random_values(seed, rows, *rest, dtype=dtype) for seed in (2, 3))
        parts = zip(q.split(each_has * size), k.split(size), v.split(size), strict=True)
        right = torch.cat([tensor for part in parts for tensor in part])
        owners = [head // each_has for head in range(each_has * kv_heads)]
        keys, values = k.split(size), v.split(size)
        threes = [(h, keys[o], values[o]) for h, o in zip(q.split(size), owners, strict=True)]
        repeated = torch.cat([tensor for three in threes for tensor in three])
        mistakes = [
            (
                "Cut yours in two: does the first half hold the v of KV head 0?",
                torch.cat([q, k, v]),
            ),
            ("Rounded: where does yours take another dtype?", right.float()),
            ("Each KV head once, not once for each query head.", repeated),
        ]
        found = observe(side_by_side, q, k, v, kv_heads, names=("q", "k", "v"))
        with judging():
            shapes = f"q {tuple(q.shape)}, k and v {tuple(k.shape)}"
            call = f"{count(kv_heads, 'KV head')}, {shapes}: side_by_side"
            hint = "All q rows of KV head 0, then its k, then its v, then the next KV head."
            judge(call, found, right, mistakes, hint, dtype=dtype)
