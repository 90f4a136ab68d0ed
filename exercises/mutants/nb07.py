"""Wrong answers to 07.1 and 07.2, and right ones of another kind."""

SEEN = "back >= 0"
MASK = "seen if window is None else seen & (back < window)"
OWN = "losses.sum(dtype=torch.float64)"
REDUCE = "dist.all_reduce(total)"
MEAN = "total[0] / total[1]"
RESULT = f"math.exp({MEAN})"
TWICE = "dist.all_reduce(total[:1])\ndist.all_reduce(total[1:])"

MUTANTS = {
    "07.1": [
        ("upside down, as published", SEEN, "back < 0", "Yours is the other way round"),
        ("transposed", SEEN, "back <= 0", "Is the token it has to predict among them?"),
        ("not even itself", SEEN, "back > 0", "look at nothing"),
        ("one ahead", SEEN, "back >= -1", "row 0 is [1 1 0], expected [1 0 0]"),
        ("no mask", MASK, "torch.ones(length, length, dtype=bool)", "one after it"),
        (
            "a window of 0 is none",
            MASK,
            "seen & (back < window) if window else seen",
            "Is 0 taken for None",
        ),
        ("numbers", MASK, "seen.float()", "a Tensor of float32, expected a"),
        ("for a batch", MASK, "seen[None]", "wrong shape (1, 3, 3), expected"),
        ("window ignored", MASK, "seen", "window=1): row 1 is [1 1 0]"),
        ("window one too wide", "back < window", "back <= window", "itself included"),
        (
            "window one too narrow",
            "back < window",
            "back < window - 1",
            "window=1): row 0 is [0 0 0]",
        ),
        (
            "window to both sides",
            "seen & (back < window)",
            "back.abs() < window",
            "window=2): row 0 is [1 1 0 0 0]",
        ),
    ],
    "07.2": [
        ("not reduced", REDUCE, "pass", "Who tells it"),
        (
            "mean of means",
            REDUCE,
            "mean = losses.mean(dtype=torch.float64)\ndist.all_reduce(mean)",
            MEAN,
            "mean / dist.get_world_size()",
            "Whose tokens weigh too much",
        ),
        (
            "mean of perplexities",
            REDUCE,
            "value = losses.mean(dtype=torch.float64).exp()\ndist.all_reduce(value)",
            RESULT,
            "value.item() / dist.get_world_size()",
            "Is exp of a mean the mean of exp?",
        ),
        (
            "a mean of an empty share",
            OWN,
            "losses.mean(dtype=torch.float64) * losses.numel()",
            "What is the mean of an empty share?",
        ),
        (
            "an empty share stays away",
            REDUCE,
            f"if losses.numel() == 0:\n    return math.nan\n{REDUCE}",
            "What is the mean of an empty share?",
        ),
        (
            "own count times ranks",
            MEAN,
            "total[0] / max(1, dist.get_world_size() * losses.numel())",
            "has every rank as many tokens",
        ),
        ("loss, not perplexity", RESULT, f"({MEAN}).item()", "That is the mean loss"),
        ("two to the power", RESULT, f"2 ** ({MEAN}).item()", "Which base did you use?"),
        (
            "added in float32",
            "dtype=torch.float64, device",
            "dtype=torch.float32, device",
            OWN,
            "losses.sum()",
            "the last digits are gone",
        ),
        (
            "on rank 0 only",
            REDUCE,
            "dist.reduce(total, 0)",
            RESULT,
            f"{RESULT} if dist.get_rank() == 0 else None",
            "rank 1 returned None",
        ),
        ("a tensor", RESULT, f"({MEAN}).exp()", "returned a Tensor, expected a float"),
        (
            "every loss sent to everyone",
            REDUCE,
            "everyone = [None] * dist.get_world_size()\n"
            "dist.all_gather_object(everyone, losses.double().tolist())\n"
            "flat = [loss for share in everyone for loss in share]",
            MEAN,
            "math.fsum(flat) / len(flat)",
            "allowed are 2 collectives",
        ),
        (
            "gathered by functional collectives",
            REDUCE,
            "from torch.distributed._functional_collectives import all_gather_tensor\n"
            "pad = torch.zeros(300_000, dtype=torch.float64)\n"
            "pad[: losses.numel()] = losses\n"
            "every = all_gather_tensor(pad, 0, dist.group.WORLD)\n" + REDUCE,
            MEAN,
            "every.sum() / total[1]",
            "allowed are 2 collectives",
        ),
        (
            "over the store",
            REDUCE,
            "store = dist.distributed_c10d._get_default_store()\n"
            "calls = perplexity.calls = getattr(perplexity, 'calls', 0) + 1\n"
            "for name, value in zip(('sum', 'count'), total.tolist()):\n"
            "    store.set(f'{name} {calls} {dist.get_rank()}', repr(value))\n"
            "def every(name):\n"
            "    ranks = range(dist.get_world_size())\n"
            "    return sum(float(store.get(f'{name} {calls} {rank}')) for rank in ranks)",
            MEAN,
            "every('sum') / every('count')",
            "called no collective",
        ),
        (
            "three collectives",
            REDUCE,
            f"{TWICE}\ndist.barrier()",
            "barrier of 0 bytes, allowed are 2 collectives",
        ),
    ],
}

RIGHT = {
    "07.1": [
        (
            "filled, then cut",
            SEEN,
            "torch.ones(length, length, dtype=torch.bool).tril()",
            "seen & (back < window)",
            "seen.triu(1 - window)",
        )
    ],
    "07.2": [("two all-reduces", REDUCE, TWICE)],
}
