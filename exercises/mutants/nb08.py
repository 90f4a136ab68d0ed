"""Wrong answers to 08.2 to 08.4, and right ones of another kind."""

GATHER = "dist.all_gather_into_tensor(every, padded)"
DEALT = "every.unflatten(0, (world, rows)).transpose(0, 1).flatten(0, 1)"
RESULT = f"{DEALT}[:size]"
IMPORT = ("import torch.distributed as dist", "import torch\nimport torch.distributed as dist")
LISTS = (GATHER, "every = [padded.clone() for _ in range(world)]\ndist.all_gather(every, padded)")
WALK = (
    "tried = {}",
    "best = 4 * rate",
    "for _ in range(20):",
    "    for each in (best / 2, best, best * 2):",
    "        if each not in tried: tried[each] = train(each)",
    "    finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
    "    best = min(finite, key=finite.get) if finite else best / 4",
    "return best, tried",
)


def _choose(*lines: str) -> str:
    """An answer to 08.4 that searches in another way than ours."""
    return "import math\n\ndef choose(train, rate):\n" + "".join(f"    {line}\n" for line in lines)


MUTANTS = {
    "08.2": [
        ("one rank after another", DEALT, "every", "one rank after another"),
        ("padding left in", RESULT, DEALT, "Padding is still in it"),
        ("own", GATHER, "pass", RESULT, "mine", "Where are the others'"),
        (
            "short shares only",
            "-(-size // world)",
            "size // world",
            "padded[: len(mine)] = mine",
            "padded[:] = mine[:rows]",
            "longer shares are missing",
        ),
        (
            "a sum of everything",
            *IMPORT,
            GATHER,
            "every = mine.new_zeros(size, *mine.shape[1:])\n"
            "every[dist.get_rank() :: world] = mine\n"
            "if mine.dtype != torch.bool:\n"
            "    dist.all_reduce(every)",
            RESULT,
            "every",
            "called all_reduce of",
        ),
        ("padded to the whole", "-(-size // world)", "size", "called all_gather of"),
        (
            "in float32",
            GATHER,
            f"every, padded = every.float(), padded.float()\n{GATHER}",
            "In which dtype does yours travel",
        ),
        (
            "on rank 0 only",
            GATHER,
            "rank = dist.get_rank()\n"
            "dist.gather(padded, list(every.chunk(world)) if rank == 0 else None)",
            RESULT,
            f"{RESULT} if rank == 0 else None",
            "rank 1 returned None",
        ),
        ("the share is overwritten", GATHER, f"{GATHER}\nmine.zero_()", "changed `mine`"),
        (
            "a rank without samples stays away",
            GATHER,
            f"if len(mine) == 0:\n    return mine.new_zeros(size, *mine.shape[1:])\n{GATHER}",
            "rank 1 returned [0]",
        ),
        ("a list", RESULT, f"{RESULT}.tolist()", "returned a list"),
    ],
    "08.3": [
        ("past DDP", "replica(inputs)", "model(inputs)", "Who calls DDP's forward"),
        ("no epoch", "sampler.set_epoch(epoch)", "pass", "which epoch"),
        (
            "evaluation mode",
            "replica.train()",
            "epoch or replica.train()",
            "what is the model's mode",
        ),
        (
            "divided again",
            "cross_entropy(replica(inputs), classes)",
            "cross_entropy(replica(inputs), classes) / torch.distributed.get_world_size()",
            "DDP has divided",
        ),
        (
            "the rate scaled",
            "lr=rate",
            "lr=rate * torch.distributed.get_world_size()",
            "Who multiplies",
        ),
        ("epochs from 1", "set_epoch(epoch)", "set_epoch(epoch + 1)", "Epochs count from 0"),
        (
            "everybody takes all samples",
            "DistributedSampler(training_set)",
            "DistributedSampler(training_set, 1, 0)",
            "own share",
        ),
        ("evaluated in training mode", "replica.eval()", "pass", "in evaluation mode"),
        ("gradients pile up", "optimizer.zero_grad()", "pass", "by hand"),
    ],
    "08.4": [
        ("the linear rule", _choose("return 4 * rate, {4 * rate: train(4 * rate)}"), "linear rule"),
        (
            "one rank's",
            _choose("return rate, {rate: train(rate), 2 * rate: train(2 * rate)}"),
            "training 1, choose(train, 0.1) chose 1 times 0.1, but 2 times gives",
        ),
        (
            "a fixed list",
            _choose(
                "tried = {k * rate: train(k * rate) for k in (1, 2, 4, 8)}",
                "tried = {each: loss for each, loss in tried.items()}",
                "finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
                "return min(finite, key=finite.get), tried",
            ),
            "tried nothing right",
        ),
        (
            "nan is the least",
            _choose(
                "tried = {k * rate: train(k * rate) for k in (16, 8, 4, 2, 1, 0.5, 0.25)}",
                "return min(tried, key=tried.get), tried",
            ),
            "what does min make of it",
        ),
        (
            "too many",
            _choose(
                "tried = {k * rate / 4: train(k * rate / 4) for k in range(1, 65)}",
                "finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
                "return min(finite, key=finite.get), tried",
            ),
            "trained 64 times",
        ),
        (
            "the bad ones are kept back",
            _choose(*WALK[:-1], "return best, {best: tried[best]}"),
            "is not in the dict",
        ),
        (
            "an invented defence",
            _choose("train(4 * rate)", "return 4 * rate, {4 * rate: 0.1, 8 * rate: 0.2}"),
            "is said to give",
        ),
        (
            "never tried",
            _choose("return 3 * rate, {2 * rate: train(2 * rate)}"),
            "which it never tried",
        ),
        ("a rate alone", _choose("train(rate)", "return 4 * rate"), "Return a rate, and a dict"),
        ("without end", _choose("import time", "while True: time.sleep(1)"), "did not return"),
    ],
}

RIGHT = {
    "08.2": [
        ("lists", *IMPORT, *LISTS, DEALT, "torch.stack(every, 1).flatten(0, 1)"),
        (
            "row by row",
            *IMPORT,
            *LISTS,
            RESULT,
            "torch.stack([every[i % world][i // world] for i in range(size)])",
        ),
    ],
    "08.3": [
        (
            "the mode after the evaluation",
            "replica.train()",
            "pass",
            "accuracies = []",
            "accuracies = []\nmodel.train()",
            "right = sum",
            "model.train()\nright = sum",
        ),
        (
            "a mean in float32",
            "right = sum((logits.argmax(dim=1) == classes).sum() for logits, classes in batches)",
            "hits = torch.cat([(y.argmax(1) == c).float() for y, c in batches])",
            "int(right) / len(test_set)",
            "hits.mean().item()",
        ),
    ],
    "08.4": [("three at a time", _choose(*WALK))],
}
