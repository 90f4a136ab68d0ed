"""Calls the student's matmul_layout for every pair of layouts; values say what is right."""

from itertools import product

import torch
from layouts import PARTIAL, REPLICATE, VARYING, Layout, LayoutError, shard

from course_utils.checking.compare import Wrong
from course_utils.checking.findings import judging

from exercise_14_2 import matmul_layout

KNOWN = (REPLICATE, shard(0), shard(1), PARTIAL)


def parts_of(whole: torch.Tensor, layout: Layout, ranks: int) -> list[torch.Tensor]:
    """What each rank has of a matrix."""
    if layout == REPLICATE:
        return [whole] * ranks
    if layout == PARTIAL:
        some = [torch.randint(-9, 9, whole.shape) for _ in range(ranks - 1)]
        return [*some, whole - sum(some)]
    return list(whole.chunk(ranks, layout.dim))


def joined(parts: list[torch.Tensor], layout: Layout) -> torch.Tensor | None:
    """The matrix that parts stand for under a layout; None if they stand for none."""
    if layout == REPLICATE:
        return parts[0] if all(map(parts[0].equal, parts)) else None
    return sum(parts) if layout == PARTIAL else torch.cat(parts, layout.dim)


def sound(a: Layout, b: Layout) -> Layout | None:
    """The layout under which the ranks' products stand for the product, on 2 and on 3 ranks."""
    found = set(KNOWN)
    for ranks in (2, 3):
        x, y = torch.randint(-9, 9, (6, 6)), torch.randint(-9, 9, (6, 6))
        pairs = zip(parts_of(x, a, ranks), parts_of(y, b, ranks), strict=True)
        try:
            parts = [one @ other for one, other in pairs]
        except RuntimeError:  # the shapes do not fit
            return None
        for layout in KNOWN:
            whole = joined(parts, layout)
            if whole is None or whole.shape != (6, 6) or not whole.equal(x @ y):
                found.discard(layout)
    return next((layout for layout in KNOWN if layout in found), None)


def answer_of(a: Layout, b: Layout) -> Layout | None:
    """What the student's function says; None where it refuses."""
    try:
        found = matmul_layout(a, b)
    except LayoutError:
        return None
    if found is None:
        said = f"matmul_layout({a}, {b}) returned None"
        raise Wrong(said, "Return a layout, or raise a LayoutError: nobody looks at a None.")
    return found


def look(a: Layout, b: Layout) -> None:
    """Judge the answer for one pair."""
    call = f"matmul_layout({a}, {b})"
    if VARYING in (a, b):
        other = b if a == VARYING else a
        expected = None if other == PARTIAL else VARYING
        hint = "Own values times anything are own values, unless the other is an unfinished sum."
    else:
        expected = sound(a, b)
        hint = "Write down the product for two ranks. What does each rank get, and how do the "
        hint += "parts make the whole?"
        if (a, b) == (PARTIAL, PARTIAL):
            hint = "(a0 + a1)(b0 + b1) has four products. Which two does nobody compute?"
        elif (a, b) == (shard(1), shard(0)):
            hint = "Each rank has a part of the inner dimension. What do the parts have to become?"
    got = answer_of(a, b)
    if got != expected:
        said = "raised LayoutError" if got is None else f"returned {got}"
        wanted = "a LayoutError" if expected is None else str(expected)
        raise Wrong(f"{call} {said}, expected {wanted}", hint)


torch.manual_seed(0)
for a, b in product((*KNOWN, VARYING), repeat=2):
    with judging():
        look(a, b)
