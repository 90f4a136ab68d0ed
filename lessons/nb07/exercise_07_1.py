"""07.1: causal mask."""

from collections.abc import Callable

from course_utils.checking.compare import SPECIAL, Wrong, article, expect_own_memory, shape
from course_utils.checking.findings import observe

TITLE = "causal mask"
PROVEN = (
    "no position looks ahead, each looks at itself and at all before it: lengths 1 to 9",
    "with a window of w each looks at the last w positions: 0, 1, 2, 3 and beyond the length",
)
WITHOUT = ("create_block_mask",)
OURS = '''"""Who may look at whom: a causal mask, with a window or without."""

import torch


def causal_mask(length: int, window: int | None = None) -> torch.Tensor:
    """(length, length) bool: row t is True at the positions that position t may look at."""
    position = torch.arange(length)
    back = position[:, None] - position  # from t (row) back to s (column)
    seen = back >= 0
    return seen if window is None else seen & (back < window)
'''
CASES = [(3, None), (1, None), (5, None), (9, None), (3, 1), (5, 2), (5, 3), (9, 4), (3, 7), (3, 0)]


def cases(causal_mask: Callable) -> None:
    """Rows as they should be, for several lengths and windows."""
    for length, window in CASES:
        look(causal_mask, length, window)


def look(causal_mask: Callable, length: int, window: int | None) -> None:
    """One mask."""
    call = f"causal_mask({length}" + (")" if window is None else f", window={window})")
    found = observe(causal_mask, length, *([] if window is None else [window]))
    width = length if window is None else window
    expected = [[0 <= t - s < width for s in range(length)] for t in range(length)]
    if found["kind"] != "Tensor" or found["dtype"] != "bool":
        dtype = f" of {found['dtype']}" if found["kind"] == "Tensor" else ""
        said = f"{call} returned {article(found['kind'])}{dtype}, expected a Tensor of bool"
        asked = "Attention asks of every pair: may t look at s? Which dtype answers yes or no?"
        is_special = found["kind"] != "Tensor" and "Tensor" in found["kind"].split()
        raise Wrong(said, SPECIAL if is_special else asked)
    rows = found["answer"]
    if shape(rows) != (length, length):
        raise Wrong(
            f"{call} has the wrong shape {shape(rows)}, expected {(length, length)}",
            "A row for each position, and what it may look at: how many dimensions?",
        )
    for t, (row, wanted) in enumerate(zip(rows, expected, strict=True)):
        if row != wanted:
            place = next(s for s in range(length) if row[s] != wanted[s])
            said = f"{call}: row {t} is {bits(row)}, expected {bits(wanted)}"
            raise Wrong(f"{said}, first wrong at position {place}", hint(t, row, wanted))
    expect_own_memory(call, found)


def bits(row: list[bool]) -> str:
    """A row of the mask as 0 and 1."""
    return "[" + " ".join("1" if value else "0" for value in row) + "]"


def hint(t: int, row: list[bool], wanted: list[bool]) -> str:
    """The question that fits the mistake in row `t`."""
    if row == [not value for value in wanted]:
        return "Yours is the other way round: True means *may look*."
    if any(row[t + 1 :]):
        return f"Position {t} may look at one after it. Is the token it has to predict among them?"
    if not any(row):
        return f"Position {t} may look at nothing. What is the softmax of nothing but -inf?"
    if not row[t]:
        return f"May position {t} not look at itself? It has read its own token."
    if not any(wanted):
        return "A window of 0 holds no position. Is 0 taken for None in yours?"
    if sum(row) > sum(wanted):
        return f"Position {t} looks too far back. A window of w holds w positions, itself included."
    return f"Position {t} does not look back far enough. What has it already read?"


SEEN = "back >= 0"
MASK = "seen if window is None else seen & (back < window)"

WRONG = [
    (
        "one buffer for all calls",
        "return seen if",
        "kept = causal_mask.__dict__.setdefault('kept', torch.empty(99, 99, dtype=torch.bool))\n"
        "mask = kept[:length, :length]\n"
        "mask[:] = seen if",
        "seen & (back < window)",
        "seen & (back < window)\nreturn mask",
        "two calls gave answers in the same memory",
    ),
    ("lists", "->", "lambda mask: mask.tolist()", "Attention asks of every pair"),
    ("on the meta device", "->", "lambda mask: mask.to('meta')", "a Tensor on the meta device"),
    ("sparse", "->", "lambda mask: mask.to_sparse()", "returned a sparse_coo Tensor"),
    ("nested", "->", "lambda mask: torch.nested.nested_tensor([mask])", "a nested Tensor"),
    ("complex", "->", "lambda mask: mask.to(torch.complex64)", "returned a complex Tensor"),
    ("upside down, as published", SEEN, "back < 0", "Yours is the other way round"),
    ("transposed", SEEN, "back <= 0", "Is the token it has to predict among them?"),
    ("not even itself", SEEN, "back > 0", "look at nothing"),
    ("one ahead", SEEN, "back >= -1", "row 0 is [1 1 0], expected [1 0 0]"),
    ("no mask", MASK, "torch.ones(length, length, dtype=bool)", "one after it"),
    (
        "a window of 0 is none",
        MASK,
        "seen & (back < window) if window else seen",
        "Is 0 taken for None",
    ),
    ("numbers", MASK, "seen.float()", "a Tensor of float32, expected a"),
    ("for a batch", MASK, "seen[None]", "wrong shape (1, 3, 3), expected"),
    ("window ignored", MASK, "seen", "window=1): row 1 is [1 1 0]"),
    ("window one too wide", "back < window", "back <= window", "itself included"),
    (
        "window one too narrow",
        "back < window",
        "back < window - 1",
        "window=1): row 0 is [0 0 0]",
    ),
    (
        "window to both sides",
        "seen & (back < window)",
        "back.abs() < window",
        "window=2): row 0 is [1 1 0 0 0]",
    ),
]
RIGHT = [
    ("from numpy", "->", "lambda mask: torch.from_numpy(mask.numpy().copy())"),
    (
        "filled, then cut",
        SEEN,
        "torch.ones(length, length, dtype=torch.bool).tril()",
        "seen & (back < window)",
        "seen.triu(1 - window)",
    ),
]
