"""08.1: exact accuracy over ranks."""

from collections.abc import Callable

import torch.distributed as dist
from torch.utils.data import DistributedSampler

from course_utils.checking.compare import count, expect_two_numbers, judge
from course_utils.checking.findings import judging, observe, random_values, where
from nbtorchrun.worker import device

TITLE = "exact accuracy over ranks"
PROVEN = (
    "1, 2, 3 and 4 ranks, 1 to 5,000 samples, also ranks that have only padding",
    "the same number on each rank, at most 2 collectives and 32 bytes per rank",
)
RANKS = (1, 2, 3, 4)
LONELY = "Does every rank call each collective, even a rank without samples?"
OURS = '''"""Exact accuracy over ranks."""

import torch
import torch.distributed as dist


def accuracy(right: torch.Tensor, size: int) -> float:
    """The share of the `size` samples that are right, the same on every rank.

    `right` (n,), bool: of the samples that DistributedSampler(shuffle=False) gave this rank.
    """
    rank, world = dist.get_rank(), dist.get_world_size()
    number = rank + world * torch.arange(len(right), device=right.device)  # of each sample
    count = (right & (number < size)).sum()  # without padding
    dist.all_reduce(count)
    return count.item() / size
'''


def cases(accuracy: Callable) -> None:
    """The value on each rank, and what was sent for it, with padded shares."""
    for size in (37, 11, 10, 5, 3, 5000, 1):
        look(accuracy, size)


def look(accuracy: Callable, size: int) -> None:
    """One call."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right = (random_values(size % 10, size) < 0.5).cpu()
    mine = list(DistributedSampler(range(size), shuffle=False))
    found = observe(accuracy, right[mine].to(device()), size, names=("`right`",))
    exact = right.sum().item() / size
    here = where(count(size, "sample"))
    with judging():
        hint = "Sample k of rank r is number r + k N. Which numbers are past the end?"
        got = found["answer"]
        if isinstance(got, float) and abs(got - exact) * size < 0.9:  # less than one sample
            hint = "Nearly right: do you round or truncate a number on the way?"
        known = mistakes(right.tolist(), ranks, rank)
        kinds = ("float", "int", "Fraction", "Decimal")
        judge(here, found, exact, known, hint, kinds=kinds, tolerance=1e-6)
    with judging():
        expect_two_numbers(here, found["calls"], ranks)


def mistakes(right: list[bool], ranks: int, rank: int) -> list[tuple[str, float]]:
    """The question for each known mistake, with the accuracy that it gives."""
    size, length = len(right), -(-len(right) // ranks)
    padded = [right[i % size] for i in range(length * ranks)]
    shares = [padded[r::ranks] for r in range(ranks)]
    real = [right[r::ranks] for r in range(ranks)]
    own = [sum(part) / max(1, len(part)) for part in real]
    share = sum(shares[rank]) / length
    short = size // ranks
    whole = sum(map(sum, (part[:short] for part in shares))) / max(1, short * ranks)
    divided = "Did you divide by the number of ranks without summing first?"
    alone = "That is this rank's own accuracy. How does it learn about the others?"
    exact = sum(right) / size
    return [
        ("That is a percentage. An accuracy is between 0 and 1.", 100 * exact),
        ("That is the share of wrong answers.", 1 - exact),
        ("Yours counts padded samples twice. Which are padding?", sum(padded) / len(padded)),
        (alone, own[rank]),
        (alone, share),
        ("That is a mean of the ranks' means. Whose samples weigh too much?", sum(own) / ranks),
        ("Right sum, wrong count: how many samples are not padding?", sum(right) / len(padded)),
        ("Right count, wrong sum: do you count padding as right answers?", sum(padded) / size),
        ("Yours drops the last sample of every rank. On which ranks is it padding?", whole),
        (divided, own[rank] / ranks),
        (divided, share / ranks),
    ]


COUNT = "(right & (number < size)).sum()"
REDUCE = "dist.all_reduce(count)"
SHARE = "count.item() / size"
MEAN = "torch.stack(every, 1).flatten()[:size].double().mean().item()"

STORE = (
    "store = dist.distributed_c10d._get_default_store()\n"
    "calls = accuracy.calls = getattr(accuracy, 'calls', 0) + 1\n"
    "store.set(f'{calls} {rank}', str(count.item()))\n"
    "count = sum(torch.tensor(int(store.get(f'{calls} {each}'))) for each in range(world))"
)

WRONG = [
    ("over the store", REDUCE, STORE, "called nothing: no collective carried a number"),
    (
        "over the store, with a barrier",
        REDUCE,
        f"{STORE}\ndist.barrier()",
        "called barrier of 0 bytes: no collective carried a number",
    ),
    ("contiguous blocks", "rank + world * torch", "rank * len(right) + torch", "returned"),
    (
        "every bit to everyone",
        REDUCE,
        "every = [torch.empty_like(right) for _ in range(world)]\ndist.all_gather(every, right)",
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
        f"every = [each[: len(right)] for each in every]\n{REDUCE}",
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
]
RIGHT = [
    ("numpy's numbers", "->", "numpys"),
    (
        "an exact fraction",
        SHARE,
        "Fraction(count.item(), size)",
        "import torch.distributed as dist",
        "import torch.distributed as dist\nfrom fractions import Fraction",
    ),
    (
        "two numbers are summed",
        REDUCE,
        f"{REDUCE}\nwhole = (number < size).sum()\ndist.all_reduce(whole)",
        SHARE,
        "count.item() / whole.item()",
    ),
]
