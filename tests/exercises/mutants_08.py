"""Answers to exercises 08.2 to 08.4 of notebook 08: right in another way, or plausibly wrong.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

from course_utils.exercises.checking import find

_ORDER = """
import torch
import torch.distributed as dist

def in_order(mine, size):
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = -(-size // world)
    padded = torch.cat([mine, mine.new_zeros(rows - len(mine), *mine.shape[1:])])
    {body}
"""
GATHER = (
    "every = [torch.empty_like(padded) for _ in range(world)]",
    "dist.all_gather(every, padded)",
)
DEALT = "return torch.stack(every, 1).flatten(0, 1)[:size]"

_CHOOSE = """
import math

def choose(train, rate):
    {body}
"""


def _order(*lines: str) -> str:
    return _ORDER.format(body="\n    ".join(lines))


def _choose(*lines: str) -> str:
    return _CHOOSE.format(body="\n    ".join(lines))


def _mended(*changes: tuple[str, str]) -> str:
    """Our repair of 08.3, changed again."""
    source = find("08.3").solution
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after)
    return source


FORWARD = ("replica(inputs)", "model(inputs)")
EPOCH = ("sampler.set_epoch(epoch)", "pass")
MODE = ("        replica.train()", "        epoch or replica.train()")
STEP = "            optimizer.zero_grad()"
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

RIGHT = {
    "08.2": [
        ("lists", _order(*GATHER, DEALT)),
        (
            "row by row",
            _order(
                *GATHER, "return torch.stack([every[i % world][i // world] for i in range(size)])"
            ),
        ),
    ],
    "08.3": [
        (
            "the mode after the evaluation",
            _mended(
                ("        replica.train()  #", "        #"),
                ("    accuracies = []", "    accuracies = []\n    model.train()"),
                ("        right = sum", "        model.train()\n        right = sum"),
            ),
        ),
    ],
    "08.4": [("three at a time", _choose(*WALK))],
}

MUTANTS = {
    "08.2": [
        (
            "one rank after another",
            _order(*GATHER, "return torch.cat(every)[:size]"),
            "one rank after another",
        ),
        (
            "padding left in",
            _order(*GATHER, "return torch.stack(every, 1).flatten(0, 1)"),
            "Padding is still in it",
        ),
        ("own", _order("return mine"), "Where are the others'"),
        (
            "short shares only",
            _order(
                "most = size // world",
                "every = [torch.empty_like(mine[:most]) for _ in range(world)]",
                "dist.all_gather(every, mine[:most].contiguous())",
                "return torch.stack(every, 1).flatten(0, 1)",
            ),
            "longer shares are missing",
        ),
        (
            "a sum of everything",
            _order(
                "every = mine.new_zeros(size, *mine.shape[1:])",
                "every[rank::world] = mine",
                "dist.all_reduce(every)" + " if mine.dtype != torch.bool else None",
                "return every",
            ),
            "called all_reduce of",
        ),
        (
            "padded to the whole",
            _order(
                "padded = torch.cat([mine, mine.new_zeros(size - len(mine), *mine.shape[1:])])",
                *GATHER,
                DEALT,
            ),
            "called all_gather of",
        ),
        (
            "in float32",
            _order("padded = padded.float()", *GATHER, DEALT),
            "In which dtype does yours travel",
        ),
        (
            "on rank 0 only",
            _order(
                "every = [torch.empty_like(padded) for _ in range(world)] if rank == 0 else None",
                "dist.gather(padded, every)",
                "if rank: return None",
                DEALT,
            ),
            "rank 1 returned None",
        ),
        (
            "the share is overwritten",
            _order(*GATHER, "mine.zero_()", DEALT),
            "changed `mine`",
        ),
        (
            "a rank without samples stays away",
            _order(
                "if len(mine) == 0: return mine.new_zeros(size, *mine.shape[1:])", *GATHER, DEALT
            ),
            "rank 1 returned [0]",
        ),
        ("a list", _order(*GATHER, "return " + DEALT[7:] + ".tolist()"), "returned a list"),
    ],
    "08.3": [
        ("past DDP", _mended(FORWARD), "Who calls DDP's forward"),
        ("no epoch", _mended(EPOCH), "which epoch"),
        ("evaluation mode", _mended(MODE), "what is the model's mode"),
        (
            "divided again",
            _mended(
                ("classes)  # through", "classes) / torch.distributed.get_world_size()  # through")
            ),
            "DDP has divided",
        ),
        (
            "the rate scaled",
            _mended(("lr=rate", "lr=rate * torch.distributed.get_world_size()")),
            "Who multiplies",
        ),
        (
            "epochs from 1",
            _mended(("set_epoch(epoch)", "set_epoch(epoch + 1)")),
            "Epochs count from 0",
        ),
        (
            "everybody takes all samples",
            _mended(
                ("DistributedSampler(training_set)", "DistributedSampler(training_set, 1, 0)"),
            ),
            "own share",
        ),
        (
            "evaluated in training mode",
            _mended(("        replica.eval()\n", "")),
            "in evaluation mode",
        ),
        (
            "gradients pile up",
            _mended((STEP, "            pass")),
            "by hand",
        ),
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
            _choose(
                *WALK[:-1],
                "return best, {best: tried[best]}",
            ),
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
