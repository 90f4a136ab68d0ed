"""Plausible wrong answers to exercises 04.1, 04.2 and 04.4, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_HEAD = """
import torch
import torch.distributed as dist

def both(going, to, coming, source):
    messages = [dist.P2POp(dist.irecv, coming, source), dist.P2POp(dist.isend, going, to)]
    for work in dist.batch_isend_irecv(messages):
        work.wait()

def {name}(tensor):
    rank, world = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % world, (rank + 1) % world
    chunks = tensor.tensor_split(world)
    {body}
"""

_WHOLE_TENSORS = (  # around the ring, where chunks should go
    "going = tensor.clone()",
    "for _ in range(world - 1):",
    "    coming = torch.empty_like(going)",
    "    both(going, right, coming, left)",
    "    tensor += coming",
    "    going = coming",
)


def _source(name: str, *lines: str) -> str:
    return _HEAD.format(name=name, body="\n    ".join(lines))


def _scatter(
    steps: str = "world - 1",
    going: str = "rank - step",
    mine: str = "rank - step - 1",
    combine: str = "mine += theirs",
    back: str = "return chunks[right]",
    to: str = "right, theirs, left",
) -> str:
    return _source(
        "ring_reduce_scatter",
        f"for step in range({steps}):",
        f"    mine = chunks[({mine}) % world]",
        "    theirs = torch.empty_like(mine)",
        f"    both(chunks[({going}) % world], {to})",
        f"    {combine}",
        back,
    )


def _gather(
    steps: str = "world - 1", going: str = "right - step", coming: str = "rank - step"
) -> str:
    return _source(
        "ring_all_gather",
        f"for step in range({steps}):",
        f"    both(chunks[({going}) % world], right, chunks[({coming}) % world], left)",
    )


def _all_reduce(*lines: str) -> str:
    return _source(
        "ring_all_reduce",
        "for step in range(2 * (world - 1)):",
        "    going, mine = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]",
        "    theirs = torch.empty_like(mine)",
        *(f"    {line}" for line in lines),
        "    mine.copy_(mine + theirs if step < world - 1 else theirs)",
    )


MUTANTS = {
    "04.1": [
        ("does not add", _scatter(combine="mine.copy_(theirs)"), "Rank 0's values are missing"),
        (
            "no message at all",
            _source("ring_reduce_scatter", "return chunks[right] / 10**rank * 11"),
            "returned",
        ),
        (
            "double precision returned",
            _scatter(back="return chunks[right].double()"),
            "returned float64, expected float32",
        ),
        (
            "double precision on the way",
            _source(
                "ring_reduce_scatter",
                "for step in range(world - 1):",
                "    mine = chunks[(rank - step - 1) % world]",
                "    theirs = torch.empty_like(mine, dtype=torch.float64)",
                "    both(chunks[(rank - step) % world].double(), right, theirs, left)",
                "    mine += theirs.to(mine)",
                "return chunks[right]",
            ),
            "bytes in one message; a chunk has at most",
        ),
        (
            "a row",
            _scatter(back="return chunks[right][None]"),
            "returned [[",
        ),
        (
            "a request thrown away",
            _source(
                "ring_reduce_scatter",
                "for step in range(world - 1):",
                "    mine = chunks[(rank - step - 1) % world]",
                "    theirs = torch.empty_like(mine)",
                "    dist.isend(chunks[(rank - step) % world], right)",
                "    dist.recv(theirs, left)",
                "    mine += theirs",
                "return chunks[right]",
            ),
            "line 17 throws a request away",
        ),
        (
            "no modulo",
            _scatter(to="rank + 1, theirs, left"),
            "there is no rank 2",
        ),
        (
            "not waited for, with a sleep",
            _source(
                "ring_reduce_scatter",
                "import time",
                "kept = []",
                "for step in range(world - 1):",
                "    mine = chunks[(rank - step - 1) % world]",
                "    theirs = torch.empty_like(mine)",
                "    kept += [dist.irecv(theirs, left)]",
                "    kept += [dist.isend(chunks[(rank - step) % world].clone(), right)]",
                "    time.sleep(0.2)",
                "    mine += theirs",
                "return chunks[right]",
            ),
            "did not wait for 2 requests",
        ),
        (
            "own chunk returned",
            _scatter(back="return chunks[rank]"),
            "Whose values does rank 0 lack?",
        ),
        ("everything returned", _scatter(back="return tensor"), "One chunk is asked for"),
        ("nothing returned", _scatter(back=""), "returned None"),
        (
            "N steps",
            _scatter(steps="world", back="return chunks[rank]"),
            "chunk 1: rank 0 returned",
        ),
        (
            "turns the other way",
            _scatter(going="rank + step", mine="rank + step + 1", to="left, theirs, right"),
            "Rank 2's values are missing",
        ),
        (
            "whole tensors",
            _source("ring_reduce_scatter", *_WHOLE_TENSORS, "return chunks[right]"),
            "sent 12 bytes in one message; a chunk has at most 8",
        ),
        (
            "a collective",
            _source("ring_reduce_scatter", "dist.all_reduce(tensor)", "return chunks[right]"),
            "used all_reduce",
        ),
        (
            "sends first, all of them",
            _source(
                "ring_reduce_scatter",
                "for step in range(world - 1):",
                "    mine = chunks[(rank - step - 1) % world]",
                "    theirs = torch.empty_like(mine)",
                "    dist.send(chunks[(rank - step) % world], right)",
                "    dist.recv(theirs, left)",
                "    mine += theirs",
                "return chunks[right]",
            ),
            "Begin both before you wait for either",
        ),
        (
            "straight to everyone",
            _source(
                "ring_reduce_scatter",
                "for step in range(1, world):",
                "    to, source = (rank + step) % world, (rank - step) % world",
                "    theirs = torch.empty_like(chunks[right])",
                "    both(chunks[(to + 1) % world], to, theirs, source)",
                "    chunks[right].add_(theirs)",
                "return chunks[right]",
            ),
            "each rank has one receiver",
        ),
    ],
    "04.2": [
        ("one step short", _gather(steps="world - 2"), "nothing had come yet"),
        ("begins with its own chunk", _gather("world - 1", "rank - step", "left - step"), "A -1"),
        ("passes on the same", _gather(going="right", coming="rank - step"), "With 2 ranks"),
        ("one step too many", _gather(steps="world"), "messages, allowed are"),
        (
            "whole tensors",
            _source(
                "ring_all_gather",
                "for step in range(world - 1):",
                "    coming = torch.empty_like(tensor)",
                "    both(tensor, right, coming, left)",
                "    tensor.copy_(torch.maximum(tensor, coming))",
            ),
            "bytes in one message",
        ),
        (
            "a collective",
            _source("ring_all_gather", "dist.all_reduce(tensor, dist.ReduceOp.MAX)"),
            "used all_reduce",
        ),
        (
            "receives first, all of them",
            _source(
                "ring_all_gather",
                "for step in range(world - 1):",
                "    dist.recv(chunks[(rank - step) % world], left)",
                "    dist.send(chunks[(right - step) % world], right)",
            ),
            "Begin both before you wait for either",
        ),
        (
            "a new tensor",
            _source(
                "ring_all_gather",
                "tensor = tensor.clone()",
                "chunks = tensor.tensor_split(world)",
                "for step in range(world - 1):",
                "    both(chunks[(right - step) % world], right,"
                " chunks[(rank - step) % world], left)",
            ),
            "nothing had come yet",
        ),
        (
            "straight to everyone",
            _source(
                "ring_all_gather",
                "for step in range(1, world):",
                "    to, source = (rank + step) % world, (rank - step) % world",
                "    both(chunks[right], to, chunks[(source + 1) % world], source)",
            ),
            "each rank has one receiver",
        ),
    ],
    "04.4": [
        (
            "not mended",
            _all_reduce("dist.send(going, right)", "dist.recv(theirs, left)"),
            "waits in send to rank",
        ),
        (
            "receives first",
            _all_reduce("dist.recv(theirs, left)", "dist.send(going, right)"),
            "Begin both before you wait for either",
        ),
        (
            "waits before it receives",
            _all_reduce("dist.isend(going, right).wait()", "dist.recv(theirs, left)"),
            "Begin both before you wait for either",
        ),
        (
            "a barrier between",
            _all_reduce("dist.send(going, right)", "dist.barrier()", "dist.recv(theirs, left)"),
            "Begin both before you wait for either",
        ),
        (
            "the library's",
            _source("ring_all_reduce", "dist.all_reduce(tensor)"),
            "used all_reduce",
        ),
        (
            "through rank 0",
            _source(
                "ring_all_reduce",
                "theirs = torch.empty_like(tensor)",
                "for other in range(1, world):",
                "    if rank == 0:",
                "        dist.recv(theirs, other)",
                "        tensor += theirs",
                "    if rank == other:",
                "        dist.send(tensor, 0)",
                "for other in range(1, world):",
                "    if rank == 0:",
                "        dist.send(tensor, other)",
                "    if rank == other:",
                "        dist.recv(tensor, 0)",
            ),
            "bytes in one message",
        ),
        (
            "to the left",
            _all_reduce("both(going, left, theirs, right)"),
            "With 2 ranks yours is right",
        ),
        (
            "whole tensors",
            _source("ring_all_reduce", *_WHOLE_TENSORS),
            "bytes in one message",
        ),
    ],
}
