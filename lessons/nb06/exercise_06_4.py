"""06.4: q, k and v side by side, by KV heads."""

from collections.abc import Callable

import torch

from course_utils.checking.compare import count, judge
from course_utils.checking.findings import observe, random_values

TITLE = "q, k and v side by side, by KV heads"
PROVEN = (
    "1 to 6 KV heads, 1 to 4 query heads each: every cut between KV heads keeps them together",
)
OURS = '''"""The rows of q, k and v in one tensor, KV head by KV head."""

import torch
from torch import Tensor


def side_by_side(q: Tensor, k: Tensor, v: Tensor, kv_heads: int) -> Tensor:
    """(H*Q, ...), (G*Q, ...), (G*Q, ...) -> ((H+2G)*Q, ...): KV head by KV head; G = kv_heads."""
    by_head = [each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]  # (G, rows, ...)
    return torch.cat(by_head, dim=1).flatten(0, 1)
'''
SIZES = (  # KV heads, query heads for each, numbers per head, what follows the rows
    *((2, 1, 2, ()), (2, 2, 2, (3,)), (3, 4, 2, (6,)), (4, 2, 1, ())),
    *((1, 3, 3, (3,)), (1, 4, 2, ()), (6, 2, 2, (5,))),
)


def cases(side_by_side: Callable) -> None:
    """The order of the rows, for weights and biases."""
    for kv_heads, each_has, size, rest in SIZES:
        for dtype in (torch.float32, torch.float64):
            look(side_by_side, kv_heads, each_has, size, rest, dtype)


def look(
    side_by_side: Callable,
    kv_heads: int,
    each_has: int,
    size: int,
    rest: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    """One call."""
    rows = kv_heads * size
    q = random_values(1, each_has * rows, *rest, dtype=dtype)
    k, v = (random_values(seed, rows, *rest, dtype=dtype) for seed in (2, 3))
    q[0], v[-1] = torch.inf, -torch.inf  # rows are moved, whatever they hold
    parts = zip(q.split(each_has * size), k.split(size), v.split(size), strict=True)
    right = torch.cat([tensor for part in parts for tensor in part])
    owners = [head // each_has for head in range(each_has * kv_heads)]
    keys, values = k.split(size), v.split(size)
    threes = [(h, keys[o], values[o]) for h, o in zip(q.split(size), owners, strict=True)]
    repeated = torch.cat([tensor for three in threes for tensor in three])
    mistakes = [
        ("Cut yours in two: does the first half hold the v of KV head 0?", torch.cat([q, k, v])),
        ("Rounded: where does yours take another dtype?", right.float()),
        ("Each KV head once, not once for each query head.", repeated),
        ("Every row as it is: who may say which values are wrong?", right.nan_to_num(0, 0, 0)),
    ]
    found = observe(side_by_side, q, k, v, kv_heads, names=("q", "k", "v"))
    shapes = f"q {tuple(q.shape)}, k and v {tuple(k.shape)}"
    call = f"{count(kv_heads, 'KV head')}, {shapes}: side_by_side"
    hint = "All q rows of KV head 0, then its k, then its v, then the next KV head."
    judge(call, found, right, mistakes, hint, dtype=dtype)


BY_HEAD = "[each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]"
JOINED = "torch.cat(by_head, dim=1).flatten(0, 1)"

WRONG = [
    ("on the meta device", "->", "lambda rows: rows.to('meta')", "a Tensor on the meta device"),
    ("sparse", "->", "lambda rows: rows.to_sparse()", "returned a sparse_coo Tensor"),
    ("nested", "->", "lambda rows: torch.nested.nested_tensor([rows])", "a nested Tensor"),
    ("complex", "->", "lambda rows: rows.to(torch.complex64)", "returned a complex Tensor"),
    ("rounded", "->", "lambda rows: rows.half().to(rows.dtype)", "the last digits are gone"),
    ("whole numbers", "->", "lambda rows: rows.long()", "That is an int64"),
    ("infinities as 0", "->", "lambda rows: rows.nan_to_num(0, 0, 0)", "Every row as it is"),
    (
        "one buffer for all calls",
        f"return {JOINED}",
        f"rows = {JOINED}\n"
        "kept = side_by_side.__dict__.setdefault(str([rows.shape, rows.dtype]), rows)\n"
        "return kept.copy_(rows)",
        "one buffer for all calls",
    ),
    ("q, then k, then v", JOINED, "torch.cat([q, k, v])", "hold the v of KV head 0?"),
    (
        "as many query heads as KV heads",
        JOINED,
        "torch.stack(by_head, dim=1).flatten(0, 2)",
        "RuntimeError",
    ),
    (
        "k and v repeated for each query head",
        f"by_head = {BY_HEAD}",
        "times, size = q.size(0) // k.size(0), k.size(0) // kv_heads\n"
        "q, k, v = (each.unflatten(0, (-1, size)) for each in (q, k, v))\n"
        "by_head = [q, k.repeat_interleave(times, 0), v.repeat_interleave(times, 0)]",
        "Each KV head once",
    ),
    ("backwards", JOINED, JOINED + ".flip(0)", "then its k, then its v"),
    (
        "the query heads dealt out like cards",
        f"by_head = {BY_HEAD}",
        f"by_head = {BY_HEAD}\n"
        "q = q.unflatten(0, (-1, kv_heads, k.size(0) // kv_heads)).transpose(0, 1)\n"
        "by_head[0] = q.flatten(1, 2)",
        "All q rows of KV head 0",
    ),
    (
        "weights only",
        "unflatten(0, (kv_heads, -1))",
        "view(kv_heads, -1, each.size(1))",
        "IndexError",
    ),
    (
        "always float32",
        "unflatten(0, (kv_heads, -1))",
        "unflatten(0, (kv_heads, -1)).float()",
        "another dtype?",
    ),
    (
        "cut into the first tensor",
        f"return {JOINED}",
        f"made = {JOINED}\nq.zero_()\nreturn made",
        "changed q that it was given",
    ),
]
RIGHT = [
    (
        "row by row, by their numbers",
        """
import torch

def side_by_side(q, k, v, kv_heads):
    size, times = len(k) // kv_heads, len(q) // len(k)
    parts = []
    for head in range(kv_heads):
        parts.append(q[head * times * size : (head + 1) * times * size])
        parts += [k[head * size : (head + 1) * size], v[head * size : (head + 1) * size]]
    return torch.cat(parts)
""",
    ),
]
