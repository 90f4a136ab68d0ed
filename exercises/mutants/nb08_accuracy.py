"""Wrong answers to 08.1."""

COUNT = "(right & (number < size)).sum()"
REDUCE = "dist.all_reduce(count)"
SHARE = "count.item() / size"
MEAN = "torch.stack(every, 1).flatten()[:size].double().mean().item()"

MUTANTS = {
    "08.1": [
        ("contiguous blocks", "rank + world * torch", "rank * len(right) + torch", "returned"),
        (
            "every bit to everyone",
            REDUCE,
            "every = [torch.empty_like(right) for _ in range(world)]\n"
            "dist.all_gather(every, right)",
            SHARE,
            MEAN,
            "called all_gather of",
        ),
        (
            "every bit to everyone, in a thread",
            REDUCE,
            "import threading\n"
            "every = [torch.empty(40 * len(right)) for _ in range(world)]\n"
            "arguments = every, right.float().repeat(40)\n"
            "thread = threading.Thread(target=dist.all_gather, args=arguments)\n"
            "thread.start()\n"
            "thread.join()\n"
            "every = [each[: len(right)] for each in every]",
            SHARE,
            MEAN,
            "outside its collectives",
        ),
        ("a sum of bytes", COUNT, f"{COUNT}.to(torch.uint8)", "5,000 samples"),
        ("rounded", SHARE, f"round({SHARE}, 2)", "do you round"),
        (
            "own",
            REDUCE,
            "real = right[number < size]",
            SHARE,
            "real.float().mean().item() if len(real) else 0.0",
            "learn about the others",
        ),
        (
            "padding counted",
            COUNT,
            "right.sum()",
            SHARE,
            "count.item() / (world * len(right))",
            "counts padded samples twice",
        ),
        (
            "mean of means",
            COUNT,
            f"{COUNT}.double() / max(1, (number < size).sum())",
            SHARE,
            "count.item() / world",
            "Whose samples weigh too much",
        ),
        ("padding called right", COUNT, "right.sum()", "do you count padding"),
        ("padding in the count", SHARE, "count.item() / (world * len(right))", "wrong count"),
        (
            "last one of each dropped",
            COUNT,
            "right[: size // world].sum()",
            SHARE,
            "count.item() / max(1, size // world * world)",
            "On which ranks is it padding",
        ),
        (
            "divided by the world, as published",
            REDUCE,
            "pass",
            SHARE,
            "right.float().mean().item() / world",
            "without summing first",
        ),
        (
            "on rank 0 only",
            REDUCE,
            "dist.reduce(count, 0)",
            SHARE,
            f"{SHARE} if rank == 0 else None",
            "rank 1 returned None",
        ),
        ("a tensor", ".item()", "", "returned a Tensor, expected a float"),
        (
            "only padding stays away",
            REDUCE,
            f"if not (number < size).any():\n    return 0.0\n{REDUCE}",
            "even a rank without samples",
        ),
        ("percent", SHARE, f"100 * {SHARE}", "That is a percentage"),
    ],
}
