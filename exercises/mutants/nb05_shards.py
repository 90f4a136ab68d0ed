"""Wrong answers to 05.1 and 05.2, and right ones of another kind."""

GATHER = "dist.all_gather_into_tensor(whole, shard)"
REDUCE = "dist.reduce_scatter_tensor(part, gradient.contiguous() / world)"

MUTANTS = {
    "05.2": [
        (
            "the sum",
            "contiguous() / world",
            "contiguous()",
            "2 times too large, and there are 2 ranks. Sum or average?",
        ),
        (
            "its own",
            REDUCE,
            "part = gradient.chunk(world)[dist.get_rank()]",
            "Who tells it of the others?",
        ),
        (
            "an all-reduce, then a slice",
            REDUCE,
            "whole = gradient / world\n"
            "dist.all_reduce(whole)\n"
            "part = whole.chunk(world)[dist.get_rank()].clone()",
            "Which collective gives its part?",
        ),
        (
            "the whole gradient",
            REDUCE,
            "part = gradient / world\ndist.all_reduce(part)",
            "How many does backward return?",
        ),
        (
            "divided in place",
            REDUCE,
            "gradient /= world\ndist.reduce_scatter_tensor(part, gradient.contiguous())",
            "changed the gradient that it was given",
        ),
        (
            "the neighbour's",
            "gradient.contiguous()",
            "gradient.roll(len(part))",
            "the gradient of its shard is",
        ),
        (
            "gathered in bfloat16",
            GATHER,
            "whole = whole.bfloat16()\ndist.all_gather_into_tensor(whole, shard.bfloat16())",
            "return whole",
            "return whole.to(shard)",
            "forward returned",
        ),
        ("gathered twice", GATHER, f"{GATHER}\n{GATHER}", "expected all_gather of"),
        (
            "the shard is emptied",
            GATHER,
            f"{GATHER}\nshard.zero_()",
            "changed the shard that it was given",
        ),
        (
            "its own, repeated",
            GATHER,
            "whole = shard.repeat(dist.get_world_size())",
            "in the order of the ranks",
        ),
    ],
    "05.1": [
        (
            "no master copy",
            "(master + 4 * states)",
            "4 * states",
            "On what does the optimizer work",
        ),
        (
            "a copy of 32 bits too",
            "4 if width < 4 else 0",
            "4",
            "Who needs a copy in 32 bits",
        ),
        ("states in 16 bits", "4 * states", "width * states", "In which precision"),
        (
            "not padded",
            "-(-parameters // ranks)",
            "parameters // ranks",
            "how long, if the ranks do not divide?",
        ),
        (
            "stage 2 for stage 1",
            "stage >= 2",
            "stage >= 1",
            "That is stage 2. What is sharded in stage 1?",
        ),
        (
            "parameters never sharded",
            "(shard if stage >= 3 else parameters)",
            "parameters",
            "That is stage 2. What is sharded in stage 3?",
        ),
        (
            "the master copy is not sharded",
            "(master + 4 * states)",
            "4 * states + parameters * master",
            "Which are sharded in this stage?",
        ),
        (
            "all ranks together",
            "return (",
            "return ranks * (",
            "what all ranks hold together",
        ),
        ("nothing", "return (", "_ = (", "Every call needs a result"),
    ],
}

RIGHT = {
    "05.2": [
        (
            "lists, the average by the collective, alone without a message",
            GATHER,
            "world = dist.get_world_size()\n"
            "if world == 1:\n"
            "    return shard.clone()\n"
            "dist.all_gather(list(whole.chunk(world)), shard)",
            REDUCE,
            "parts = list(gradient.clone().contiguous().chunk(world))\n"
            "dist.reduce_scatter(part, parts, op=dist.ReduceOp.AVG)",
        )
    ]
}
