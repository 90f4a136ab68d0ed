"""Notebook 11, long sequences and many experts: attention, zigzag, dispatch, a hidden bug."""

from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise


@exercise("11.1", "merge two pieces of attention", file="exercise_11_1.py")
def check_11_1() -> list[str]:
    """Outputs and log-sum-exps of pieces of several sizes, large scores, and nothing to see."""
    probe("probe_11_1.py", 1)
    return [
        "pieces of 1 to 7 keys, scores up to 2000, rows that see nothing of a piece:",
        "the attention over both pieces and its log-sum-exp, in float64 and float32",
    ]


@exercise("11.2", "the zigzag order", file="exercise_11_2.py")
def check_11_2() -> list[str]:
    """The two pieces of every rank for 1 to 6 ranks, and sizes that do not divide."""
    probe("probe_11_2.py", 1)
    return [
        "1 to 6 ranks, every T up to 40 that has a position for each of 2N pieces:",
        "each position on one rank, cut as torch.tensor_split cuts, work as equal as pieces allow",
    ]


@exercise("11.3", "dispatch and combine", file="exercise_11_3.py")
def check_11_3() -> list[str]:
    """Rows, order, gradients and bytes, with uneven, empty and silent ranks and in pairs."""
    probe_each("probe_11_3.py", (2, 3, 4, 1))
    return [
        "1 to 4 ranks, and pairs of 4; uneven ranks, ranks without rows, ranks nobody sends to:",
        "every row arrives once and returns to its place, gradients too; no rank sends a row twice",
    ]


@exercise("11.4", "the bug that the loss does not show", file="exercise_11_4.py")
def check_11_4() -> list[str]:
    """Loss and gradient of a masked step, with uneven valid tokens, and with none."""
    probe_each("probe_11_4.py", (2, 3, 4, 1))
    return [
        "1 to 4 ranks; equal and uneven counts, a rank without valid tokens, none at all:",
        "loss and gradient are those of one process, the same on every rank",
    ]
