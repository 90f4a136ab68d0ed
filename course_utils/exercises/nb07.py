"""Notebook 07, the Transformer lab: the causal mask, and perplexity over ranks."""

from course_utils.exercises.checking import exercise, probe
from course_utils.exercises.compare import Wrong


@exercise("07.1", "causal mask", file="exercise_07_1.py", without=("create_block_mask",))
def check_07_1() -> list[str]:
    """Rows as they should be, for several lengths and windows."""
    probe("probe_07_1.py", 1)
    return [
        "no position looks ahead, each looks at itself and at all before it: lengths 1 to 9",
        "with a window of w each looks at the last w positions: 1, 2, 3 and beyond the length",
    ]


@exercise("07.2", "exact perplexity over ranks", file="exercise_07_2.py")
def check_07_2() -> list[str]:
    """The value on each rank, and what was sent for it, with shares that differ."""
    for ranks in (1, 2, 3, 4):
        try:
            probe("probe_07_2.py", ranks, timeout=40)
        except Wrong as wrong:
            waits = ranks > 2 and ("hangs" in wrong.message or "waited" in wrong.message)
            question = "Does every rank come to each collective, one with an empty share too?"
            raise Wrong(wrong.message, wrong.hint or question * waits) from None
    return [
        "1, 2, 3 and 4 ranks with uneven shares, some of them empty: the same number on each rank",
        "equal to one process to 12 digits, over up to 400,000 tokens",
        "at most 2 collectives and 32 bytes per rank",
    ]
