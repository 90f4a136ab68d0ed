"""Calls the student's overlaps() with many cuts; one process is enough."""

from collections.abc import Callable

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.findings import judging
from course_utils.checking.values import lists_of_ints

from exercise_13_2 import overlaps

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


def check_reads(overlaps: Callable) -> None:
    """Raise Wrong unless `overlaps` names every value once."""
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
        rows = lists_of_ints(got)
        found = None if rows is None else [tuple(row) for row in rows]
        if found != right:
            hint = _read_hint(found, right, pieces)
            raise Wrong(f"{call} returned {got}, expected {right}", hint)


def cut(count: int, parts: int) -> list[tuple[int, int]]:
    """Where `torch.tensor_split` cuts `count` values."""
    ends = torch.arange(count).tensor_split(parts)
    sizes = [len(each) for each in ends]
    return [(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(parts)]


def _read_hint(found: list[tuple] | None, right: list[tuple], pieces: list[tuple[int, int]]) -> str:
    if found is None or any(len(each) != 3 for each in found):
        return "Return a list with three numbers for each read, ints: (piece, first, last)."
    if any(first >= last for _, first, last in found):
        return "There is a read of no values. When do a piece and the range not overlap?"
    absolute = [(n, a + pieces[n][0], b + pieces[n][0]) for n, a, b in right]
    if found == absolute and found != right:
        return "Count from the beginning of the piece: its file begins there."
    if [(n, a, b - 1) for n, a, b in right] == found:
        return "`last` isn't included, as in a slice."
    if sorted(found) == right:
        return "The reads are right. Name them in the order of the pieces."
    if len(found) < len(right):
        return "Values are missing. Can a range begin in one piece and end in another?"
    if len(found) > len(right):
        return "That reads values that nobody asked for."
    return "The range may begin or end inside a piece."


with judging():
    check_reads(overlaps)
