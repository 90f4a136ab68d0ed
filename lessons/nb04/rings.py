"""What 04.1 to 04.3 share: rows of several lengths, and a look at every message of a ring."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, count
from course_utils.checking.findings import random_values

NOT_YET = -1.0  # what the check puts where nothing has come yet
EVEN = 60_000  # values; every number of ranks up to 6 divides it


def rows() -> Iterator[tuple[int, torch.dtype]]:
    """Lengths and dtypes, in every ring the same."""
    for length in (3, 7, 8, 13, 1, 0, EVEN):
        yield length, torch.float64 if length in (8, 0) else torch.float32


def part() -> dist.ProcessGroup | None:
    """The group of all ranks but rank 0; None where there is none, or this rank is not in it."""
    if dist.get_world_size() <= 2:  # it would have one rank
        return None
    group = dist.new_group(range(1, dist.get_world_size()))
    dist.barrier()  # a rank that ends while another still connects to it would stop that one
    return group if dist.get_rank() > 0 else None


def row_of_each(length: int, dtype: torch.dtype, group: Any, more: int = 0) -> list[Tensor]:
    """Every rank's row, each `more` values longer than its left neighbour's."""
    ranks = range(dist.get_world_size(group))
    return [random_values(7 * r + length, length + r * more, dtype=dtype) for r in ranks]


def case_of(row: Tensor, group: Any, words: str = "") -> str:
    """How a message names a case."""
    return count(len(row), "value") + words + ", in a group" * (group is not None)


def of_neighbours(rank: int, ranks: int) -> str:
    """The question for a wrong value that nothing else explains."""
    if ranks > 2:
        return "With 2 ranks yours is right. What differs? From which neighbour do you receive?"
    return f"Whose values does rank {rank} lack? And does each rank cut as tensor_split(N)?"


def look_at_messages(
    here: str, found: dict, largest: int, named: str, allowed: int, even: bool
) -> None:
    """Raise `Wrong` at a message that a ring does not need.

    Args:
        here: how the message begins.
        found: what `observe` saw.
        largest: bytes that a message may have.
        named: how the student's code calls what has so many bytes.
        allowed: messages of each rank.
        even: whether each message has exactly that size.
    """
    if others := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
        raise Wrong(f"{here} used {', '.join(others)}", "Can you do it with messages alone?")
    sent = [size for name, size in found["calls"] if name == "send"]
    if (most := max(sent, default=0)) > largest:
        hint = "What does the right neighbour still need of all that?"
        said = f"{here} sent {most:,} bytes in one message; {named} {largest:,}"
        raise Wrong(said, hint)
    if len(sent) > allowed:
        hint = "How many steps does a chunk need to have been everywhere?"
        raise Wrong(f"{here} sent {count(len(sent), 'message')}, allowed are {allowed}", hint)
    if len(found["peers"]) > 1:
        to = ", ".join(map(str, found["peers"]))
        raise Wrong(f"{here} sent to ranks {to}", "In a ring each rank has one receiver. Which?")
    if even and sum(sent) != allowed * largest:
        hint = "In which dtype do the values travel? And is every step's message there?"
        raise Wrong(f"{here} sent {sum(sent):,} bytes, expected {allowed} x {largest:,}", hint)
