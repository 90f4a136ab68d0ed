"""14.2: what to read."""

from collections.abc import Callable

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.values import lists_of_ints

TITLE = "what to read"
PROVEN = (
    "0 to 11 values, saved by 1 to 5 ranks and loaded by 1 to 5: every value is read once,",
    "in order, from the piece that has it; empty pieces and empty ranges read nothing",
)
OURS = '''"""Which values to read from which piece that another number of ranks wrote."""


def overlaps(pieces: list[tuple[int, int]], start: int, stop: int) -> list[tuple[int, int, int]]:
    """Where the values from `start` up to `stop` are: (piece, first, last), in order.

    `first` and `last` count from the piece's own beginning; `last` isn't included.
    """
    found = []
    for number, (begin, end) in enumerate(pieces):
        first, last = max(begin, start), min(end, stop)
        if first < last:
            found.append((number, first - begin, last - begin))
    return found
'''
CUTS = (  # the pieces of the old ranks, and the range that a new rank wants
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


def cases(overlaps: Callable) -> None:
    """Every range of every cut of 0 to 11 values, and hand-made cuts with empty pieces."""
    every: list[tuple] = list(CUTS)
    for count in (1, 2, 7, 10, 11, 0):
        for saved in (3, 4, 2, 1, 5):
            pieces = cut(count, saved)
            every += [(pieces, *mine) for ranks in (3, 2, 4, 1, 5) for mine in cut(count, ranks)]
    for pieces, start, stop in every:
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
            hint = read_hint(found, right, pieces)
            raise Wrong(
                f"{call} returned {got if found is None else found}, expected {right}", hint
            )


def cut(count: int, parts: int) -> list[tuple[int, int]]:
    """Where `torch.tensor_split` cuts `count` values."""
    ends = torch.arange(count).tensor_split(parts)
    sizes = [len(each) for each in ends]
    return [(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(parts)]


def read_hint(found: list[tuple] | None, right: list[tuple], pieces: list[tuple[int, int]]) -> str:
    """The question that fits wrong reads."""
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


WHEN = "first < last"
READ = "(number, first - begin, last - begin)"

WRONG = [
    (
        "counts from the tensor's beginning",
        READ,
        "(number, first, last)",
        "Count from the beginning of the piece",
    ),
    ("empty reads too", WHEN, "first <= last", "a read of no values"),
    (
        "the last included",
        READ,
        "(number, first - begin, last - begin - 1)",
        "`last`",
    ),
    ("one piece only", "return found", "return found[:1]", "end in another?"),
    (
        "whole pieces",
        READ,
        "(number, 0, end - begin)",
        "may begin or end inside a piece",
    ),
    (
        "only pieces that lie inside",
        WHEN,
        "start <= begin < end <= stop",
        "end in another?",
    ),
    (
        "two numbers",
        READ,
        "(first - begin, last - begin)",
        "three numbers for each read",
    ),
    (
        "pieces of equal size",
        "first, last =",
        "size = pieces[0][1] - pieces[0][0]\n"
        "begin, end = number * size, (number + 1) * size\n"
        "first, last =",
        "expected",
    ),
    ("backwards", "->", "lambda reads: reads[::-1]", "in the order of the pieces"),
    ("words", "->", "lambda reads: [[str(each) for each in read] for read in reads]", "ints"),
]
RIGHT = [
    (
        "lists in place of tuples",
        READ,
        "[number, first - begin, last - begin]",
    ),
    (
        "with sets",
        "def overlaps(pieces, start, stop):\n"
        "    wanted = set(range(start, stop))\n"
        "    hits = [[v - b for v in range(b, e) if v in wanted] for b, e in pieces]\n"
        "    return [(n, h[0], h[-1] + 1) for n, h in enumerate(hits) if h]\n",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a generator", "->", "iter"),
]
