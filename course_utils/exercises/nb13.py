"""Notebook 13, many machines: agree on a stop, reads of a reshard, the time that failures cost."""

import math
from collections.abc import Callable
from typing import Any

import torch

from course_utils.exercises.calls import called
from course_utils.exercises.checking import exercise, probe_each
from course_utils.exercises.compare import Wrong, expect
from course_utils.exercises.failures import lonely

LONELY = lonely("Does every rank call the same collective, whatever its own wish is?")
CASES = (  # the pieces of the old ranks, and the range that a new rank wants
    ([(0, 4), (4, 7), (7, 10)], 2, 9),
    ([(0, 4), (4, 7), (7, 10)], 4, 7),
    ([(0, 4), (4, 7), (7, 10)], 5, 6),
    ([(0, 4), (4, 7), (7, 10)], 0, 10),
    ([(0, 3), (3, 6), (6, 8), (8, 10)], 3, 8),
    ([(0, 3), (3, 6), (6, 8), (8, 10)], 7, 10),
    ([(0, 1), (1, 1), (1, 1), (1, 1)], 0, 1),
    ([(0, 1), (1, 2), (2, 2), (2, 2)], 1, 2),
    ([(0, 2), (2, 2), (2, 5)], 1, 4),
    ([(0, 4), (4, 8)], 4, 4),
    ([(0, 0), (0, 0)], 0, 0),
)


@exercise("13.1", "agree on a stop", file="exercise_13_1.py")
def check_13_1() -> list[str]:
    """The answer on every rank, for every set of ranks that wish to stop, and the message."""
    probe_each("probe_13_1.py", (3, 2, 4, 1), hint=LONELY)
    return [
        "1 to 4 ranks and a group of two, whoever wishes to stop: all ranks give the same answer",
        "one collective of a few bytes, whatever the rank itself wishes",
    ]


@exercise("13.2", "what to read", file="exercise_13_2.py")
def check_13_2() -> list[str]:
    """Every range of every cut of 0 to 11 values, and hand-made cuts with empty pieces."""
    probe_each("probe_13_2.py", (1,))
    return [
        "0 to 11 values, saved by 1 to 5 ranks and loaded by 1 to 5: every value is read once,",
        "in order, from the piece that has it; empty pieces and empty ranges read nothing",
    ]


def check_reads(overlaps: Callable) -> None:
    """Raise Wrong unless `overlaps` names every value once; called by the probe."""
    cases: list[tuple] = list(CASES)
    for count in (1, 2, 7, 10, 11, 0):
        for saved in (3, 4, 2, 1, 5):
            pieces = cut(count, saved)
            cases += [(pieces, *mine) for ranks in (3, 2, 4, 1, 5) for mine in cut(count, ranks)]
    for pieces, start, stop in cases:
        call = f"overlaps({pieces}, {start}, {stop})"
        got = called(call, overlaps, list(pieces), start, stop)
        right = [
            (number, max(begin, start) - begin, min(end, stop) - begin)
            for number, (begin, end) in enumerate(pieces)
            if max(begin, start) < min(end, stop)
        ]
        if as_tuples(got) != right:
            raise Wrong(f"{call} returned {got}, expected {right}", _read_hint(got, right, pieces))


def as_tuples(got: Any) -> Any:
    """A list of lists, or of tensors' numbers, by value."""
    try:
        return [tuple(int(number) for number in each) for each in got]
    except (TypeError, ValueError):
        return got


def cut(count: int, parts: int) -> list[tuple[int, int]]:
    """Where `torch.tensor_split` cuts `count` values."""
    ends = torch.arange(count).tensor_split(parts)
    sizes = [len(each) for each in ends]
    return [(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(parts)]


def _read_hint(got: Any, right: list[tuple], pieces: list[tuple[int, int]]) -> str:
    found = as_tuples(got)
    if not isinstance(found, list) or not all(
        isinstance(each, tuple) and len(each) == 3 for each in found
    ):
        return "Return a list with three numbers for each read: (piece, first, last)."
    if any(first >= last for _, first, last in found):
        return "There is a read of no values. When do a piece and the range not overlap?"
    absolute = [(n, a + pieces[n][0], b + pieces[n][0]) for n, a, b in right]
    if found == absolute and found != right:
        return "Count from the beginning of the piece: its file begins there."
    if [(n, a, b - 1) for n, a, b in right] == found:
        return "`last` isn't included, as in a slice."
    if len(found) < len(right):
        return "Values are missing. Can a range begin in one piece and end in another?"
    if len(found) > len(right):
        return "That reads values that nobody asked for."
    return "The range may begin or end inside a piece."


@exercise("13.3", "what failures cost")
def check_13_3(lost: Callable) -> list[str]:
    """The share of time lost, for several intervals, saves, restarts and failure rates."""
    for interval, save, restart, between in (
        (1000.0, 60.0, 600.0, 11_000.0),
        (600.0, 30.0, 0.0, 7200.0),
        (3600.0, 0.0, 300.0, 86_400.0),
        (500.0, 20.0, 100.0, 1e12),
        (7.0, 3.0, 2.0, 90.0),
    ):
        call = f"lost({interval:g}, {save:g}, {restart:g}, {between:g})"
        got = called(call, lost, interval, save, restart, between)
        right = save / interval + (interval / 2 + restart) / between
        mistakes = {
            "On average a failure comes in the middle of an interval, not at its end.": save
            / interval
            + (interval + restart) / between,
            "After a failure you also have to restart.": save / interval + interval / 2 / between,
            "You left out the saves. How many seconds of saving per second of training?": (
                interval / 2 + restart
            )
            / between,
            "You left out the failures.": save / interval,
            "That is the time that is left. How much is lost?": 1 - right,
            "That is in percent: return a share.": 100 * right,
            "A restart is needed once per failure, not once per interval.": (save + restart)
            / interval
            + interval / 2 / between,
            "Those are seconds lost per interval. How many per second of training?": right
            * interval,
        }
        hint = "Add one save per interval, and per failure half an interval and a restart."
        for said, wrong in mistakes.items():
            if (
                isinstance(got, (int, float))
                and math.isclose(got, wrong, rel_tol=1e-6)
                and wrong != right
            ):
                hint = said
                break
        expect(f"{call} returned", got, right, otherwise=hint, tolerance=1e-6)
    return ["the share of time lost to saves, lost work and restarts, for five sets of numbers"]
