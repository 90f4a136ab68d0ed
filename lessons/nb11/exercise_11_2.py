"""11.2: the zigzag order."""

from collections.abc import Callable

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, kind, plain
from course_utils.checking.values import lists_of_ints

TITLE = "the zigzag order"
PROVEN = (
    "1 to 6 ranks, every T up to 40 that has a position for each of 2N pieces:",
    "each position on one rank, cut as torch.tensor_split cuts, work as equal as pieces allow",
)
OURS = '''"""Which positions a rank holds so that a causal mask gives all ranks equal work."""


def zigzag(length: int, rank: int, ranks: int) -> list[tuple[int, int]]:
    """The two pieces of a rank, each as (start, stop): one early and one late.

    The 2 `ranks` pieces are cut as `torch.tensor_split` cuts: the first ones may be one longer.
    """
    size, longer = divmod(length, 2 * ranks)
    starts = [piece * size + min(piece, longer) for piece in range(2 * ranks + 1)]
    return [(starts[piece], starts[piece + 1]) for piece in (rank, 2 * ranks - 1 - rank)]
'''
Pairs = list[tuple[int, int]]


def cases(zigzag: Callable) -> None:
    """The two pieces of every rank for 1 to 6 ranks, and sizes that do not divide."""
    for ranks in range(1, 7):
        for length in (4 * ranks, 6 * ranks, *range(2 * ranks, 41)):
            look(zigzag, length, ranks)


def look(zigzag: Callable, length: int, ranks: int) -> None:
    """What all ranks of a group hold."""
    pieces = torch.arange(length).tensor_split(2 * ranks)
    cuts = [(int(piece[0]), int(piece[-1]) + 1) for piece in pieces]
    every = []
    for rank in range(ranks):
        call = f"zigzag(length={length}, rank={rank}, ranks={ranks})"
        answer = called(call, zigzag, length, rank, ranks)
        pairs = lists_of_ints(answer)
        if pairs is None or any(len(pair) != 2 for pair in pairs):
            said = f"{call} returned {kind(answer)}: {plain(answer)}"
            raise Wrong(said, "Return two pairs of ints: [(start, stop), (start, stop)].")
        every.append((call, [(start, stop) for start, stop in pairs]))
    for rank, (call, got) in enumerate(every):
        right = [cuts[rank], cuts[2 * ranks - 1 - rank]]
        if got != right:
            said = f"{call} returned {got}, expected {right}"
            raise Wrong(said, hint(got, [pairs for _, pairs in every], cuts, rank))


def hint(got: Pairs, every: list[Pairs], cuts: Pairs, rank: int) -> str:
    """The question that leads to the mistake."""
    ranks, length = len(every), cuts[-1][1]
    early, late = right = [cuts[rank], cuts[2 * ranks - 1 - rank]]
    if sorted(got) == right:
        return "The pieces are right. The early one comes first."
    if len(got) != 2:
        return f"Every rank holds 2 of the {2 * ranks} pieces."
    if got == [(start, stop - start) for start, stop in (early, late)]:
        return "The second number is where a piece stops, not how long it is."
    if got == [(start, stop - 1) for start, stop in (early, late)]:
        return "A piece stops before `stop`, as a slice does. Is your last position in it?"
    if got == [cuts[2 * rank], cuts[2 * rank + 1]]:
        return "These two are neighbours: rank 0 then has little work, and the last rank much."
    if got == [cuts[rank], cuts[ranks + rank]]:
        return "The last rank holds the later piece of both halves. Which end should it start from?"
    pairs = sorted(pair for pairs in every for pair in pairs)
    held = [p for start, stop in pairs for p in range(max(0, start), min(stop, length))]
    beyond = any(start < 0 or stop > length for start, stop in pairs)
    if beyond or len(held) != len(set(held)):
        return f"Some positions are held twice, or lie beyond the last one, {length - 1}."
    if len(held) != length:
        missing = min(set(range(length)) - set(held))
        said = f"Nobody holds position {missing}. {length} positions in {2 * ranks} pieces:"
        return f"{said} which pieces are one longer?"
    if pairs != cuts:
        return f"Each position is held once, but the pieces are {cuts}: the longer ones come first."
    return f"The {2 * ranks} pieces are {cuts}. Pair an early piece with a late one."


PIECES = "(rank, 2 * ranks - 1 - rank)"
STOP = "starts[piece + 1]"

WRONG = [
    ("neighbours", PIECES, "(2 * rank, 2 * rank + 1)", "These two are neighbours"),
    ("both halves alike", PIECES, "(rank, ranks + rank)", "the later piece of both"),
    ("the late one first", PIECES, "(2 * ranks - 1 - rank, rank)", "comes first"),
    ("one too far", PIECES, "(rank, 2 * ranks - 2 - rank)", "held twice"),
    ("one piece", PIECES, "(rank,)", "Every rank holds 2 of the"),
    ("sizes rounded down", "min(piece, longer)", "0", "Nobody holds position"),
    (
        "positions, not pieces",
        "def zigzag(length, rank, ranks):\n    return list(range(rank, length, ranks))\n",
        "Return two pairs",
    ),
    ("nothing", "def zigzag(length, rank, ranks):\n    pass\n", "Return two pairs"),
    ("start and length", STOP, f"{STOP} - starts[piece]", "not how long it is"),
    ("to the last position", STOP, f"{STOP} - 1", "as a slice does"),
    (
        "rounded boundaries",
        "piece * size + min(piece, longer)",
        "piece * length // (2 * ranks)",
        "the longer ones come first",
    ),
    (
        "one list for all calls",
        "return [(",
        "kept = zigzag.__dict__.setdefault('kept', [])\nkept[:] = [(",
        f"{PIECES}]",
        f"{PIECES}]\nreturn kept",
        "changed what the call before had returned",
    ),
    (
        "fractions",
        "->",
        "lambda pairs: [[each + 0.4 for each in pair] for pair in pairs]",
        "Return two pairs of ints",
    ),
    (
        "infinity",
        "->",
        "lambda pairs: [[float('inf'), 0.0] for pair in pairs]",
        "Return two pairs of ints",
    ),
    ("far beyond", "->", "lambda pairs: [(0, 10**18), (0, 1)]", "beyond the last one"),
]
RIGHT = [
    (
        "with tensor_split, and ranges as lists",
        "import torch\ndef zigzag(length, rank, ranks):\n"
        "    cut = torch.arange(length).tensor_split(2 * ranks)\n"
        "    return [[int(cut[p][0]), int(cut[p][-1]) + 1]"
        " for p in (rank, 2 * ranks - 1 - rank)]\n",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a tensor", "->", "torch.tensor"),
    ("a generator", "->", "lambda pairs: (pair for pair in pairs)"),
]
