"""Calls the student's zigzag for every rank of several groups."""

import torch

from course_utils.checking.compare import Wrong, kind, plain
from course_utils.checking.findings import judging
from course_utils.checking.values import lists_of_ints

from exercise_11_2 import zigzag


def look(length: int, ranks: int) -> None:
    """Judge what all ranks of a group hold."""
    cuts = [0, *torch.arange(length).tensor_split(2 * ranks)]
    cuts = [(int(part[0]), int(part[-1]) + 1) for part in cuts[1:]]
    every = []
    for rank in range(ranks):
        call = f"zigzag(length={length}, rank={rank}, ranks={ranks})"
        answer = zigzag(length, rank, ranks)
        pairs = lists_of_ints(answer)
        if pairs is None or any(len(pair) != 2 for pair in pairs):
            said = f"{call} returned {kind(answer)}: {plain(answer)}"
            raise Wrong(said, "Return two pairs of ints: [(start, stop), (start, stop)].")
        every.append((call, [(start, stop) for start, stop in pairs]))
    held = sorted(p for _, got in every for start, stop in got for p in range(start, stop))
    for rank, (call, got) in enumerate(every):
        right = [cuts[rank], cuts[2 * ranks - 1 - rank]]
        if sorted(got) != right:
            raise Wrong(f"{call} returned {got}, expected {right}", hint(got, held, cuts, rank))
        if got != right:
            said = f"{call} returned {got}, expected {right}"
            raise Wrong(said, "The pieces are right. The early one comes first.")


def hint(got: list, held: list[int], cuts: list, rank: int) -> str:
    """The question that leads to the mistake."""
    ranks, length = len(cuts) // 2, cuts[-1][1]
    if len(got) != 2:
        return f"Every rank holds 2 of the {2 * ranks} pieces."
    if got == [cuts[2 * rank], cuts[2 * rank + 1]]:
        return "These two are neighbours: rank 0 then has little work, and the last rank much."
    if got == [cuts[rank], cuts[ranks + rank]]:
        return "The last rank holds the later piece of both halves. Which end should it start from?"
    if len(held) != len(set(held)) or max(held, default=0) >= length:
        return f"Some positions are held twice, or lie beyond the last one, {length - 1}."
    if len(held) != length:
        missing = min(set(range(length)) - set(held))
        said = f"Nobody holds position {missing}. {length} positions in {2 * ranks} pieces:"
        return f"{said} which pieces are one longer?"
    return f"The {2 * ranks} pieces are {cuts}. Pair an early piece with a late one."


for ranks in range(1, 7):
    for length in (4 * ranks, 6 * ranks, *range(2 * ranks, 41)):
        with judging():
            look(length, ranks)
