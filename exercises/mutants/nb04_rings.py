"""Wrong answers to 04.2, 04.3 and 04.1, and right ones of another kind."""

PAIR = "chunks[(rank - step) % world], chunks[(rank - step - 1) % world]"
ROOM = "torch.empty_like(chunks[0])"
EXCHANGE = "exchange(going, theirs, group)"
COMBINE = "combine(mine, theirs)"
FINISHED = "chunks[(rank + 1) % world]"
BOTH = """begun = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, coming, group=group, group_peer=left),
            dist.P2POp(dist.isend, going, group=group, group_peer=right),
        ]
    )
    for work in begun:  # both are under way: now wait for both
        work.wait()"""


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


MUTANTS = {
    "04.2": [
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
    ],
    "04.3": [
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
    ],
    "04.1": [
        (
            "not mended",
            BOTH,
            "dist.send(going, right)\ndist.recv(coming, left)",
            "waits in send to rank",
        ),
        (
            "receives first",
            BOTH,
            "dist.recv(coming, left)\ndist.send(going, right)",
            "Begin both before you wait for either",
        ),
        (
            "a request not waited for",
            BOTH,
            "begun = dist.isend(going, right)\ndist.recv(coming, left)\ndel begun",
            "did not wait for 1 request",
        ),
        (
            "the library's",
            BOTH,
            "every = [None] * world\n"
            "dist.all_gather_object(every, going, group)\n"
            "coming.copy_(every[left])",
            "used all_gather",
        ),
        ("to the left", "left, right =", "right, left =", "left"),
        (
            "fills a tensor of its own",
            "irecv, coming,",
            "irecv, coming.clone(),",
            "Who fills it?",
        ),
    ],
}

RIGHT = {
    "04.2": [
        (
            "the exchange that the stub imports",
            "from neighbours import exchange",
            "import neighbours",
            EXCHANGE,
            "neighbours.exchange(going, theirs, group=group)",
        ),
        ("messages of its own", EXCHANGE, _messages("(rank + 1) % world", "(rank - 1) % world")),
    ],
    "04.1": [
        (
            "odd ranks receive first, through a buffer",
            BOTH,
            "send = lambda: dist.send(going, group=group, group_dst=right)\n"
            "recv = lambda: dist.recv(coming, group=group, group_src=left)\n"
            "for act in (send, recv) if rank % 2 == 0 else (recv, send):\n"
            "    act()",
        ),
        (
            "begins to receive, then sends",
            BOTH,
            "begun = dist.irecv(coming, group=group, group_src=left)\n"
            "dist.send(going, group=group, group_dst=right)\n"
            "begun.wait()",
        ),
    ],
}
