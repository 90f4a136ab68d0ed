"""04.2: ring reduce-scatter."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import expect, judge
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.checking.values import close
from lessons.nb04.rings import (
    EVEN,
    case_of,
    look_at_messages,
    of_neighbours,
    part,
    row_of_each,
    rows,
)

TITLE = "ring reduce-scatter"
PROVEN = (
    "up to 6 ranks and a group, 0 to 60,000 values, two dtypes: every value right, also where N "
    "does not divide, also inside `values`",
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
OURS = '''"""The first half of a ring."""

import torch
import torch.distributed as dist
from neighbours import exchange
from torch import Tensor


def reduce_scatter(
    values: Tensor, combine=Tensor.add_, group: dist.ProcessGroup | None = None
) -> Tensor:
    """This rank's finished chunk, (rank + 1) mod N, of the sum over all ranks: (m,)."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    chunks = values.tensor_split(world)  # N views; the first ones may be one value longer
    room = torch.empty_like(chunks[0])
    for step in range(world - 1):
        going, mine = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        theirs = room[: len(mine)]
        exchange(going, theirs, group)
        combine(mine, theirs)
    return chunks[(rank + 1) % world]
'''


def cases(reduce_scatter: Callable) -> None:
    """The finished chunk of each rank, and every message sent for it."""
    for length, dtype in rows():
        look(reduce_scatter, length, dtype)
    look(reduce_scatter, 7, torch.float32, combine=larger)
    look(reduce_scatter, 4, torch.float32, diverged=True)
    look_at_two_calls(reduce_scatter)
    if (group := part()) is not None:
        look(reduce_scatter, 7, torch.float32, group=group)


def larger(ours: Tensor, theirs: Tensor) -> Tensor:
    """Another way to combine than to add."""
    return torch.maximum(ours, theirs, out=ours)


def look(
    reduce_scatter: Callable,
    length: int,
    dtype: torch.dtype,
    combine: Callable = Tensor.add_,
    diverged: bool = False,
    group: dist.ProcessGroup | None = None,
) -> None:
    """One call; where a rank has `diverged`, its first value is infinite."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    every = row_of_each(length, dtype, group)
    if diverged:
        every[-1][0] = torch.inf
    chunk, result = (rank + 1) % ranks, every[0].clone()
    for other in every[1:]:
        combine(result, other)
    values = every[rank].clone()
    found = observe(reduce_scatter, values, combine, group, may_change=True)
    words = ", the larger value" * (combine is larger) + ", one of them infinite" * diverged
    here = where(case_of(values, group, words) + f", chunk {chunk}" * (ranks > 1))
    terms = [each.tensor_split(ranks)[chunk] for each in every]
    plainly = length < EVEN and group is None and combine is not larger and not diverged
    with judging():
        question = "Which chunk does this rank own in the end? Return it."
        if diverged:
            question = "A rank's value is infinite. Don't hide that: the training has diverged."
        elif found["kind"] == "Tensor":
            got = found["answer"] if isinstance(found["answer"], list) else []
            question = hint(got, result, ranks, rank, combine)
        expected = result.tensor_split(ranks)[chunk]
        judge(here, found, expected, (), question, dtype=dtype, terms=terms if plainly else None)
    with judging():
        largest, even = math.ceil(length / ranks) * dtype.itemsize, length >= EVEN
        look_at_messages(here, found, largest, "a chunk has at most", ranks - 1, even)


def look_at_two_calls(reduce_scatter: Callable) -> None:
    """The chunk stands in `values`, and the second call leaves the first one's answer as it was."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rows_of = [[random_values(50 * call + r, 6) for r in range(ranks)] for call in (1, 2)]
    values = [every[rank].clone() for every in rows_of]
    answers = [reduce_scatter(each) for each in values]
    first = sum(rows_of[0]).tensor_split(ranks)[(rank + 1) % ranks]
    hint = "The caller may still hold the first answer. Does yours keep one buffer for all calls?"
    with judging():
        here = where("two calls with 6 values each")
        expect(f"{here}: the first answer is now", answers[0], first, (), hint, 1e-5)
        held = values[0].tensor_split(ranks)[(rank + 1) % ranks]
        hint = "The second half reads your finished chunk in `values`. Where do you add?"
        expect(f"{here}: `values` holds as the finished chunk", held, first, (), hint, 1e-5)


def hint(got: list[float], result: Tensor, ranks: int, rank: int, combine: Callable) -> str:
    """The question that fits wrong values."""
    if ranks > 1:
        if combine is larger:
            return "It was to take the larger value. Is it `combine` that takes theirs into yours?"
        if len(got) > math.ceil(len(result) / ranks):
            return "One chunk is asked for, and that is more."
        for number, chunk in enumerate(result.tensor_split(ranks)):
            if got and close(got, chunk.tolist(), 1e-5):
                return f"Finished, but that is chunk {number}. Which one comes in last?"
    return of_neighbours(rank, ranks)


PAIR = "chunks[(rank - step) % world], chunks[(rank - step - 1) % world]"
ROOM = "torch.empty_like(chunks[0])"
EXCHANGE = "exchange(going, theirs, group)"
COMBINE = "combine(mine, theirs)"
FINISHED = "chunks[(rank + 1) % world]"


def _messages(to: str, source: str) -> str:
    """An exchange in 04.2 with ranks that are not the neighbours in our ring."""
    return (
        "begun = dist.batch_isend_irecv([\n"
        f"    dist.P2POp(dist.irecv, theirs, group=group, group_peer={source}),\n"
        f"    dist.P2POp(dist.isend, going, group=group, group_peer={to}),\n"
        "])\n"
        "for work in begun:\n"
        "    work.wait()"
    )


WRONG = [
    ("does not add", COMBINE, "mine.copy_(theirs)", "Rank 0's values are missing"),
    ("always adds", COMBINE, "mine += theirs", "Is it `combine`"),
    (
        "double precision returned",
        FINISHED,
        FINISHED + ".double()",
        "returned float64, expected float32",
    ),
    (
        "double precision on the way",
        ROOM,
        "torch.empty_like(chunks[0], dtype=torch.float64)",
        EXCHANGE,
        "exchange(going.double(), theirs, group)",
        COMBINE,
        "combine(mine, theirs.to(mine))",
        "bytes in one message; a chunk has at most",
    ),
    (
        "one buffer for all calls",
        f"return {FINISHED}",
        f"mine, name = {FINISHED}, str(values.dtype)\n"
        "new = torch.empty(60_000, dtype=values.dtype)\n"
        "kept = reduce_scatter.__dict__.setdefault(name, new)\n"
        "return kept[: len(mine)].copy_(mine)",
        "one buffer for all calls",
    ),
    (
        "adds beside values",
        "chunks = values.tensor_split(world)",
        "chunks = values.clone().tensor_split(world)",
        "Where do you add?",
    ),
    ("hides infinities", FINISHED, f"{FINISHED}.nan_to_num()", "Don't hide that"),
    ("half", "->", "lambda chunk: chunk.half().to(chunk.dtype)", "the last digits are gone"),
    ("a row", FINISHED, FINISHED + "[None]", "returned [["),
    (
        "a request thrown away",
        EXCHANGE,
        "left, right = (rank - 1) % world, (rank + 1) % world\n"
        "dist.isend(going, right)\n"
        "dist.recv(theirs, left)",
        "line 20 throws a request away",
    ),
    (
        "no modulo",
        EXCHANGE,
        _messages(to="rank + 1", source="(rank - 1) % world"),
        "there is no rank 2",
    ),
    (
        "all ranks, whatever the group",
        EXCHANGE,
        "exchange(going, theirs)",
        "name the `group`",
    ),
    ("own chunk returned", FINISHED, "chunks[rank]", "Whose values does rank 0 lack?"),
    ("everything returned", FINISHED, "values", "One chunk is asked for"),
    (
        "turns the other way",
        PAIR,
        "chunks[(rank + step) % world], chunks[(rank + step + 1) % world]",
        EXCHANGE,
        _messages(to="(rank - 1) % world", source="(rank + 1) % world"),
        "Rank 2's values are missing",
    ),
    (
        "whole tensors",
        f"room = {ROOM}",
        "going = values.clone()",
        f"going, mine = {PAIR}",
        "mine = values",
        "room[: len(mine)]",
        "torch.empty_like(going)",
        COMBINE,
        f"{COMBINE}\ngoing = theirs",
        "sent 12 bytes in one message; a chunk has at most 8",
    ),
    (
        "a collective",
        "range(world - 1)",
        "range(1)",
        EXCHANGE,
        "dist.all_reduce(values)",
        COMBINE,
        "pass",
        "used all_reduce",
    ),
    (
        "straight to everyone",
        "range(world - 1)",
        "range(1, world)",
        PAIR,
        f"chunks[(rank + step + 1) % world], {FINISHED}",
        EXCHANGE,
        _messages(to="(rank + step) % world", source="(rank - step) % world"),
        "each rank has one receiver",
    ),
]
RIGHT = [
    ("a copy of the chunk", "->", "torch.clone"),
    (
        "the exchange that the stub imports",
        "from neighbours import exchange",
        "import neighbours",
        EXCHANGE,
        "neighbours.exchange(going, theirs, group=group)",
    ),
    ("messages of its own", EXCHANGE, _messages("(rank + 1) % world", "(rank - 1) % world")),
]
