"""Notebook 00, processes and collectives: ranks, an all-gather of one's own, bus bandwidth."""

from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise


@exercise("00.1", "which rank is it?", file="exercise_00_1.py")
def check_00_1() -> list[str]:
    """Every process of clusters with equal and unequal nodes, and some invalid ones."""
    probe("probe_00_1.py", 1)
    return [
        "every rank of clusters with 1 to 5 nodes of equal and unequal size",
        "a ValueError for a node or local rank that does not exist",
    ]


GATHERS = ("all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single")


@exercise("00.2", "all-gather out of send and recv", file="exercise_00_2.py", without=GATHERS)
def check_00_2() -> list[str]:
    """The lists on each rank, the calls that made them, and the bytes sent."""
    probe_each("probe_00_2.py", (2, 3, 4, 6, 1), hint=_run_hint)
    return [
        "1, 2, 3, 4 and 6 ranks, float32 and float64: every rank has all tensors, in order",
        "point-to-point messages only; each rank sends N - 1 times the bytes of its tensor",
    ]


def _run_hint(ranks: int, message: str) -> str:
    if ranks == 1:
        return "A single rank already has everything. Whom does yours send to?"
    if "hangs" in message:
        return (
            "Who receives while everyone sends? Does every send have its recv, and is every "
            "request kept and waited for?"
        )
    return ""


@exercise("00.3", "bus bandwidth from a measurement", file="exercise_00_3.py")
def check_00_3() -> list[str]:
    """Every collective, several sizes and numbers of ranks, and a misspelled name."""
    probe("probe_00_3.py", 1)
    return ["six collectives, 2 to 7 ranks", "a ValueError for any other name"]
