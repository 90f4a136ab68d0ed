"""Calls the student's causal_mask for several lengths and windows."""

from course_utils.checking.compare import SPECIAL, Wrong, article, shape
from course_utils.checking.findings import judging, observe

from exercise_07_1 import causal_mask

CASES = [(3, None), (1, None), (5, None), (9, None), (3, 1), (5, 2), (5, 3), (9, 4), (3, 7), (3, 0)]


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


for length, window in CASES:
    call = f"causal_mask({length}" + (")" if window is None else f", window={window})")
    found = observe(causal_mask, length, *([] if window is None else [window]))
    width = length if window is None else window
    expected = [[0 <= t - s < width for s in range(length)] for t in range(length)]
    with judging():
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
