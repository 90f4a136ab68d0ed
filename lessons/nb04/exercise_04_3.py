"""04.3: ring all-gather."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import judge
from course_utils.checking.findings import described, judging, observe, where
from lessons.nb04.rings import (
    EVEN,
    NOT_YET,
    case_of,
    look_at_messages,
    of_neighbours,
    part,
    row_of_each,
    rows,
)

TITLE = "ring all-gather"
PROVEN = (
    "up to 6 ranks and a group, 0 to 60,000 values, two dtypes: every value right, also where N "
    "does not divide",
    "N - 1 messages per rank to one neighbour, none larger than a chunk, and no collective",
)
RANKS = (2, 3, 4, 6, 1)
ALONE = "A rank alone has no neighbour. Which steps are left?"
LONELY = "Who receives while everyone sends? Begin both before you wait for either, on every rank."
HINTS = {
    "SIGABRT": "A message is not as long as the tensor that waits for it. Which tensor comes now?",
    "not connected": "Does each message name the `group`, and does every rank send as many?",
    "reached the end of the script": (
        "Does each message name the `group`, and does every rank send as many?"
    ),
}
OURS = '''"""The second half of a ring."""

import torch.distributed as dist
from neighbours import exchange
from torch import Tensor


def all_gather(values: Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Fill `values`, (n,), in place: rank r brings its chunk (r + 1) mod N."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    chunks = values.tensor_split(world)
    for step in range(world - 1):
        going, coming = chunks[(rank + 1 - step) % world], chunks[(rank - step) % world]
        exchange(going, coming, group)
'''


def cases(all_gather: Callable) -> None:
    """The whole tensor on each rank, and every message sent for it."""
    for length, dtype in rows():
        look(all_gather, length, dtype)
    look(all_gather, 4, torch.float32, diverged=True)
    if (group := part()) is not None:
        look(all_gather, 7, torch.float32, group=group)


def look(
    all_gather: Callable,
    length: int,
    dtype: torch.dtype,
    diverged: bool = False,
    group: dist.ProcessGroup | None = None,
) -> None:
    """One call; where a rank has `diverged`, the first value is infinite."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    every = row_of_each(length, dtype, group)
    if diverged:
        every[-1][0] = torch.inf
    result, right = sum(every), (rank + 1) % ranks
    values = torch.full_like(result, NOT_YET)
    values.tensor_split(ranks)[right].copy_(result.tensor_split(ranks)[right])
    found = observe(all_gather, values, group, may_change=True) | described(values)
    here = where(case_of(values, group, ", one of them infinite" * diverged))
    with judging():
        question = "A -1 is what the check put where nothing had come yet. Which chunk is missing?"
        if NOT_YET not in values:
            question = of_neighbours(rank, ranks)
        if diverged:
            question = "A value is infinite. Pass on every value as it is."
        terms = every if length < EVEN and group is None and not diverged else None
        judge(here, found, result, (), question, dtype=dtype, verb="holds", terms=terms)
    with judging():
        largest, even = math.ceil(length / ranks) * dtype.itemsize, length >= EVEN
        look_at_messages(here, found, largest, "a chunk has at most", ranks - 1, even)


PAIR = "chunks[(rank - step) % world], chunks[(rank - step - 1) % world]"

WRONG = [
    (
        "hides infinities",
        "exchange(going, coming, group)",
        "exchange(going, coming, group)\nvalues.nan_to_num_()",
        "Pass on every value as it is",
    ),
    (
        "all ranks, whatever the group",
        "exchange(going, coming, group)",
        "exchange(going, coming)",
        "name the `group`",
    ),
    ("one step short", "world - 1", "world - 2", "nothing had come yet"),
    (
        "begins with its own chunk",
        "chunks[(rank + 1 - step) % world], chunks[(rank - step) % world]",
        PAIR,
        "A -1",
    ),
    ("passes on the same", "rank + 1 - step", "rank + 1", "With 2 ranks"),
    ("one step too many", "world - 1", "world", "messages, allowed are"),
    (
        "whole tensors",
        "chunks[(rank + 1 - step) % world], chunks[(rank - step) % world]",
        "values, values.clone()",
        "exchange(going, coming, group)",
        "exchange(going, coming, group)\nvalues.copy_(values.maximum(coming))",
        "bytes in one message",
    ),
    (
        "a new tensor",
        "values.tensor_split",
        "values.clone().tensor_split",
        "nothing had come yet",
    ),
]
RIGHT = [
    (
        "messages of its own",
        "exchange(going, coming, group)",
        "begun = dist.irecv(coming, group=group, group_src=(rank - 1) % world)\n"
        "dist.send(going, group=group, group_dst=(rank + 1) % world)\n"
        "begun.wait()",
    ),
    ("it returns the tensor, too", "->", "lambda nothing: torch.zeros(3)"),
]
