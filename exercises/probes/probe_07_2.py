"""Calls the student's perplexity on uneven shares, and watches what goes over the wire."""

import math

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, expect_two_numbers, judge
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_07_2 import perplexity

SHARES = {1: [4], 2: [3, 1], 3: [4, 0, 2], 4: [0, 5, 1, 2]}  # tokens of each rank


def mistakes(sums: list[float], counts: list[int], rank: int) -> list[tuple[str, float]]:
    """The question for each known mistake, with the perplexity that it gives."""
    ranks, mean = len(counts), sum(sums) / sum(counts)
    means = [total / n for total, n in zip(sums, counts, strict=True) if n]
    exps = list(map(math.exp, means))
    as_many = "Right sum, wrong count: has every rank as many tokens as this one?"
    of_means = "That is a mean of the ranks' means. Whose tokens weigh too much in it?"
    of_exps = "That is a mean of perplexities. Is exp of a mean the mean of exp?"
    own = sums[rank] / counts[rank] if counts[rank] else math.inf
    own_count = sum(sums) / (ranks * counts[rank]) if counts[rank] else math.inf
    return [
        ("That is the mean loss. Perplexity is one step further: which?", mean),
        ("Losses are in nats, to the base e. Which base did you use?", 2**mean),
        ("That is this rank's own. Who tells it of the others?", math.exp(min(700, own))),
        (of_means, math.exp(sum(means) / len(means))),
        (of_means, math.exp(sum(means) / ranks)),
        (of_exps, sum(exps) / len(exps)),
        (of_exps, sum(exps) / ranks),
        (of_exps, (sum(exps) + ranks - len(exps)) / ranks),
        (as_many, math.exp(min(700, own_count))),
    ]


init()
rank, counts = dist.get_rank(), SHARES[dist.get_world_size()]
for times, dtype in ((1, torch.float32), (1, torch.float64), (50_000, torch.float32)):
    lengths = [n * times for n in counts]
    every = [random_values(r, n, dtype=dtype).abs() + r / 2 for r, n in enumerate(lengths)]
    found = observe(perplexity, every[rank].clone(), names=("the losses",))
    sums = [math.fsum(each.double().tolist()) for each in every]
    otherwise = "Write down, rank by rank, the sum of the losses and their number. Divide which?"
    expected = math.exp(sum(sums) / sum(lengths))
    here = where(f"{', '.join(f'{n:,}' for n in lengths)} tokens")
    with judging():
        known = list(mistakes(sums, lengths, rank))
        if 0 in counts:
            known.append(("What is the mean of an empty share? And its sum?", math.nan))
        judge(here, found, expected, known, otherwise, kinds=("float",), tolerance=1e-12)
    with judging():
        if len(counts) > 1 and not found["calls"]:
            hint = "The value is right. What carried it to this rank: a store, a file?"
            raise Wrong(f"{here} called no collective", hint)
        expect_two_numbers(here, found["calls"])
