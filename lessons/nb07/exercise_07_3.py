"""07.3: exact perplexity over ranks."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import expect_two_numbers, judge, name_of
from course_utils.checking.findings import judging, observe, random_values, where

TITLE = "exact perplexity over ranks"
PROVEN = (
    "1, 2, 3 and 4 ranks with uneven shares, some of them empty: the same number on each rank",
    "equal to one process to 12 digits, over up to 400,000 tokens; a loss that is not finite shows",
    "at most 2 collectives and 32 bytes per rank",
)
RANKS = (1, 2, 3, 4)
LONELY = "Does every rank come to each collective, with an empty share too?"
OURS = '''"""Exact perplexity over ranks with uneven shares."""

import math

import torch
import torch.distributed as dist


def perplexity(losses: torch.Tensor) -> float:
    """The perplexity over all ranks, from the loss of each token this rank predicted: (n,)."""
    total = torch.tensor([0.0, losses.numel()], dtype=torch.float64, device=losses.device)
    total[0] = losses.sum(dtype=torch.float64)  # 0 for an empty share
    dist.all_reduce(total)  # sum of losses and number of tokens, 16 bytes
    return math.exp(total[0] / total[1])
'''
SHARES = {1: [4], 2: [3, 1], 3: [4, 0, 2], 4: [0, 5, 1, 2]}  # tokens of each rank


def cases(perplexity: Callable) -> None:
    """Few tokens and many, and losses that are not finite."""
    for times, dtype in ((1, torch.float32), (1, torch.float64), (50_000, torch.float32)):
        look(perplexity, times, dtype)
    for broken in (math.inf, math.nan):
        look(perplexity, 1, torch.float32, broken)


def look(perplexity: Callable, times: int, dtype: torch.dtype, broken: float = 0.0) -> None:
    """One call; `broken` takes the place of the last rank's last loss."""
    rank, counts = dist.get_rank(), SHARES[dist.get_world_size()]
    lengths = [n * times for n in counts]
    every = [random_values(r, n, dtype=dtype).abs() + r / 2 for r, n in enumerate(lengths)]
    case = f"{', '.join(f'{n:,}' for n in lengths)} tokens, {name_of(dtype)}"
    otherwise = "Write down, rank by rank, the sum of the losses and their number. Divide which?"
    if broken:
        every[-1][-1] = broken
        case += f", one loss is {broken}"
        otherwise = f"A rank's training has diverged. Don't hide that: its loss is {broken}."
    found = observe(perplexity, every[rank].clone(), names=("the losses",))
    sums = [math.fsum(each.double().tolist()) for each in every]
    expected = math.exp(sum(sums) / sum(lengths))
    here = where(case)
    with judging():
        known = mistakes(sums, lengths, rank)
        judge(here, found, expected, known, otherwise, kinds=("float",), tolerance=1e-12)
    with judging():
        expect_two_numbers(here, found["calls"], len(counts))


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
    empty = [("What is the mean of an empty share? And its sum?", math.nan)] * (0 in counts)
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
        *empty,
    ]


OWN = "losses.sum(dtype=torch.float64)"
REDUCE = "dist.all_reduce(total)"
MEAN = "total[0] / total[1]"
RESULT = f"math.exp({MEAN})"
STORE = (
    "store = dist.distributed_c10d._get_default_store()\n"
    "calls = perplexity.calls = getattr(perplexity, 'calls', 0) + 1\n"
    "for name, value in zip(('sum', 'count'), total.tolist()):\n"
    "    store.set(f'{name} {calls} {dist.get_rank()}', repr(value))\n"
    "def every(name):\n"
    "    ranks = range(dist.get_world_size())\n"
    "    return sum(float(store.get(f'{name} {calls} {rank}')) for rank in ranks)"
)
TWICE = "dist.all_reduce(total[:1])\ndist.all_reduce(total[1:])"

WRONG = [
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
        "Does every rank come to each collective",
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
        STORE,
        MEAN,
        "every('sum') / every('count')",
        "called nothing: no collective carried a number",
    ),
    (
        "over the store, with a barrier",
        REDUCE,
        f"{STORE}\ndist.barrier()",
        MEAN,
        "every('sum') / every('count')",
        "called barrier of 0 bytes: no collective carried a number",
    ),
    (
        "hides an infinity",
        OWN,
        "losses[losses.isfinite()].sum(dtype=torch.float64)",
        "Don't hide that",
    ),
    ("hides a nan", OWN, "losses.nansum(dtype=torch.float64)", "Don't hide that"),
    (
        "three collectives",
        REDUCE,
        f"{TWICE}\ndist.barrier()",
        "barrier of 0 bytes, allowed are 2 collectives",
    ),
]
RIGHT = [("numpy's numbers", "->", "numpys"), ("two all-reduces", REDUCE, TWICE)]
