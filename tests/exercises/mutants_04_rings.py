"""Plausible wrong answers to exercises 04.2, 04.3 and 04.1, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_HEAD = """
import torch
import torch.distributed as dist

def both(going, to, coming, source, group=None):
    messages = [
        dist.P2POp(dist.irecv, coming, group=group, group_peer=source),
        dist.P2POp(dist.isend, going, group=group, group_peer=to),
    ]
    for work in dist.batch_isend_irecv(messages):
        work.wait()

def {signature}:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    left, right = (rank - 1) % world, (rank + 1) % world
    {body}
"""

_SCATTER = "reduce_scatter(values, combine=torch.Tensor.add_, group=None)"
_GATHER = "all_gather(values, group=None)"
_EXCHANGE = "exchange(going, coming, group=None)"
_CUT = "chunks = values.tensor_split(world)"
_WHOLE_TENSORS = (  # around the ring, where chunks should go
    _CUT,
    "going = values.clone()",
    "for _ in range(world - 1):",
    "    coming = torch.empty_like(going)",
    "    both(going, right, coming, left, group)",
    "    combine(values, coming)",
    "    going = coming",
)


def _source(signature: str, *lines: str) -> str:
    return _HEAD.format(signature=signature, body="\n    ".join(lines))


def _scatter(
    steps: str = "world - 1",
    going: str = "rank - step",
    mine: str = "rank - step - 1",
    take: str = "combine(mine, theirs)",
    back: str = "return chunks[right]",
    send: str = "both(chunks[{going} % world], right, theirs, left, group)",
) -> str:
    return _source(
        _SCATTER,
        _CUT,
        f"for step in range({steps}):",
        f"    mine = chunks[({mine}) % world]",
        "    theirs = torch.empty_like(mine)",
        f"    {send.format(going=f'({going})')}",
        f"    {take}",
        back,
    )


def _gather(
    steps: str = "world - 1", going: str = "right - step", coming: str = "rank - step"
) -> str:
    return _source(
        _GATHER,
        _CUT,
        f"for step in range({steps}):",
        f"    both(chunks[({going}) % world], right, chunks[({coming}) % world], left, group)",
    )


RIGHT = {
    "04.2": [
        (
            "the exchange that the stub imports",
            "from neighbours import exchange\n"
            + _scatter(send="exchange(chunks[{going} % world], theirs, group)"),
        )
    ],
    "04.1": [
        (
            "odd ranks receive first, through a buffer",
            _source(
                _EXCHANGE,
                "send = lambda: dist.send(going, group=group, group_dst=right)",
                "recv = lambda: dist.recv(coming, group=group, group_src=left)",
                "for act in (send, recv) if rank % 2 == 0 else (recv, send):",
                "    act()",
            ),
        ),
        (
            "begins to receive, then sends",
            _source(
                _EXCHANGE,
                "begun = dist.irecv(coming, group=group, group_src=left)",
                "dist.send(going, group=group, group_dst=right)",
                "begun.wait()",
            ),
        ),
    ],
}

MUTANTS = {
    "04.2": [
        ("does not add", _scatter(take="mine.copy_(theirs)"), "Rank 0's values are missing"),
        ("always adds", _scatter(take="mine += theirs"), "Is it `combine`"),
        (
            "double precision returned",
            _scatter(back="return chunks[right].double()"),
            "returned float64, expected float32",
        ),
        (
            "double precision on the way",
            _source(
                _SCATTER,
                _CUT,
                "for step in range(world - 1):",
                "    mine = chunks[(rank - step - 1) % world]",
                "    theirs = torch.empty_like(mine, dtype=torch.float64)",
                "    both(chunks[(rank - step) % world].double(), right, theirs, left, group)",
                "    combine(mine, theirs.to(mine))",
                "return chunks[right]",
            ),
            "bytes in one message; a chunk has at most",
        ),
        ("a row", _scatter(back="return chunks[right][None]"), "returned [["),
        (
            "a request thrown away",
            _scatter(
                send="dist.isend(chunks[{going} % world], right); dist.recv(theirs, left)",
            ),
            "line 20 throws a request away",
        ),
        (
            "no modulo",
            _scatter(send="both(chunks[{going} % world], rank + 1, theirs, left, group)"),
            "there is no rank 2",
        ),
        (
            "all ranks, whatever the group",
            _scatter(send="both(chunks[{going} % world], right, theirs, left)"),
            "name the `group`",
        ),
        (
            "own chunk returned",
            _scatter(back="return chunks[rank]"),
            "Whose values does rank 0 lack?",
        ),
        ("everything returned", _scatter(back="return values"), "One chunk is asked for"),
        (
            "turns the other way",
            _scatter(
                going="rank + step",
                mine="rank + step + 1",
                send="both(chunks[{going} % world], left, theirs, right, group)",
            ),
            "Rank 2's values are missing",
        ),
        (
            "whole tensors",
            _source(_SCATTER, *_WHOLE_TENSORS, "return chunks[right]"),
            "sent 12 bytes in one message; a chunk has at most 8",
        ),
        (
            "a collective",
            _source(_SCATTER, _CUT, "dist.all_reduce(values)", "return chunks[right]"),
            "used all_reduce",
        ),
        (
            "straight to everyone",
            _source(
                _SCATTER,
                _CUT,
                "for step in range(1, world):",
                "    to, source = (rank + step) % world, (rank - step) % world",
                "    theirs = torch.empty_like(chunks[right])",
                "    both(chunks[(to + 1) % world], to, theirs, source, group)",
                "    combine(chunks[right], theirs)",
                "return chunks[right]",
            ),
            "each rank has one receiver",
        ),
    ],
    "04.3": [
        ("one step short", _gather(steps="world - 2"), "nothing had come yet"),
        ("begins with its own chunk", _gather("world - 1", "rank - step", "left - step"), "A -1"),
        ("passes on the same", _gather(going="right", coming="rank - step"), "With 2 ranks"),
        ("one step too many", _gather(steps="world"), "messages, allowed are"),
        (
            "whole tensors",
            _source(
                _GATHER,
                "for step in range(world - 1):",
                "    coming = torch.empty_like(values)",
                "    both(values, right, coming, left, group)",
                "    values.copy_(torch.maximum(values, coming))",
            ),
            "bytes in one message",
        ),
        (
            "a new tensor",
            _source(
                _GATHER,
                "chunks = values.clone().tensor_split(world)",
                "for step in range(world - 1):",
                "    coming = chunks[(rank - step) % world]",
                "    both(chunks[(right - step) % world], right, coming, left, group)",
            ),
            "nothing had come yet",
        ),
    ],
    "04.1": [
        (
            "not mended",
            _source(_EXCHANGE, "dist.send(going, right)", "dist.recv(coming, left)"),
            "waits in send to rank",
        ),
        (
            "receives first",
            _source(_EXCHANGE, "dist.recv(coming, left)", "dist.send(going, right)"),
            "Begin both before you wait for either",
        ),
        (
            "a request not waited for",
            _source(
                _EXCHANGE,
                "begun = dist.isend(going, right)",
                "dist.recv(coming, left)",
                "del begun",
            ),
            "did not wait for 1 request",
        ),
        (
            "the library's",
            _source(
                _EXCHANGE,
                "every = [None] * world",
                "dist.all_gather_object(every, going, group)",
                "coming.copy_(every[left])",
            ),
            "used all_gather",
        ),
        ("to the left", _source(_EXCHANGE, "both(going, left, coming, right, group)"), "left"),
        (
            "fills a tensor of its own",
            _source(_EXCHANGE, "both(going, right, torch.empty_like(coming), left, group)"),
            "Who fills it?",
        ),
    ],
}
