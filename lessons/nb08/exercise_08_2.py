"""08.2: answers in order."""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import count, expect_calls, expect_new, judge, name_of
from course_utils.checking.findings import judging, observe, random_values, where

TITLE = "answers in order"
PROVEN = (
    "1, 2, 3 and 4 ranks, 1 to 101 samples, a rank without any; numbers, rows and images",
    "float32, float64, int64 and bool, every row in its place on every rank",
    "what is not finite stays so; one all-gather of the longest share's rows",
)
RANKS = (2, 3, 4, 1)
LONELY = "Does every rank call each collective, even a rank without samples?"
OURS = '''"""What all ranks have predicted, in the order of the data set."""

import torch.distributed as dist
from torch import Tensor


def in_order(mine: Tensor, size: int) -> Tensor:
    """The predictions of all samples in the order of the data set, on every rank: (size, ...).

    `mine` (n, ...): of samples rank, rank + N, rank + 2N and so on.
    """
    world = dist.get_world_size()
    rows = -(-size // world)  # of the longest share
    padded = mine.new_zeros(rows, *mine.shape[1:])
    padded[: len(mine)] = mine
    every = mine.new_empty(world * rows, *mine.shape[1:])  # rank 0's, then rank 1's
    dist.all_gather_into_tensor(every, padded)
    return every.unflatten(0, (world, rows)).transpose(0, 1).flatten(0, 1)[:size]  # dealt back
'''
DTYPES = (torch.float64, torch.float32, torch.int64, torch.bool)
SHAPES = ((), (3,), (2, 2))
SIZES = (7, 10, 2, 12, 1, 101)
BROKEN = "Predictions of a model that has diverged. Don't hide that: they stay what they are."


def cases(in_order: Callable) -> None:
    """The rows on each rank, and what was sent for them."""
    for number, size in enumerate(SIZES):
        for place, shape in enumerate(SHAPES):
            whole = values(10 * number + place, size, shape, DTYPES[(number + place) % 4])
            look(in_order, whole)
    for broken in (math.inf, math.nan):
        whole = values(99, 7, (3,), torch.float32)
        whole[5, 1] = broken
        look(in_order, whole, f", one of them {broken}", BROKEN)


def values(seed: int, size: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """What all ranks together have predicted: (size, ...), no two rows alike where possible."""
    drawn = random_values(seed, size, *shape, dtype=torch.float64)
    if dtype == torch.bool:
        return drawn > 0
    return (1e9 * drawn).to(dtype) if dtype == torch.int64 else drawn.to(dtype)


def look(in_order: Callable, whole: torch.Tensor, which: str = "", hint: str = "") -> None:
    """One call, beside what it should give."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (size, *shape), dtype = whole.shape, whole.dtype
    # Indexed, not sliced: a share of its own memory.
    places = [torch.tensor(range(each, size, ranks), dtype=torch.int64) for each in range(ranks)]
    shares = [whole[place.to(whole.device)] for place in places]
    rows = -(-size // ranks)
    padded = [torch.cat([s, s.new_zeros(rows - len(s), *shape)]) for s in shares]
    of_shape = f" of shape {tuple(shape)}" * bool(shape)
    here = where(f"{count(size, 'sample')}{of_shape}, {name_of(dtype)}{which}")
    found = observe(in_order, shares[rank].clone(), size, names=("`mine`",))
    dealt = torch.stack(padded, 1).flatten(0, 1)
    mistakes = [
        ("That is one rank after another. Which sample is row 1?", torch.cat(shares)),
        ("That is one rank after another, cut off at the end.", torch.cat(padded)[:size]),
        ("Padding is still in it: one rank after another.", torch.cat(padded)),
        ("Padding is still in it. How many rows are real?", dealt),
        ("That is this rank's share. Where are the others'?", shares[rank]),
        ("The last rows of the longer shares are missing.", dealt[: size // ranks * ranks]),
        ("Rounded on the way. In which dtype does yours travel?", whole.float().to(dtype)),
    ]
    with judging():
        hint = hint or "Row k of rank r is sample r + k N. Where does it go?"
        judge(here, found, whole, mistakes, hint, dtype=dtype, tolerance=0.0)
        expect_new(here, found)
    with judging():
        sent = rows * whole[:1].nbytes
        allowed = [[["all_gather", sent]], *[[]] * (ranks == 1)]
        hint = "The longest share has ceil(size / N) rows: every rank gives that many, once."
        expect_calls(here, found["calls"], allowed, hint)


GATHER = "dist.all_gather_into_tensor(every, padded)"
DEALT = "every.unflatten(0, (world, rows)).transpose(0, 1).flatten(0, 1)"
RESULT = f"{DEALT}[:size]"
IMPORT = ("import torch.distributed as dist", "import torch\nimport torch.distributed as dist")
LISTS = (GATHER, "every = [padded.clone() for _ in range(world)]\ndist.all_gather(every, padded)")

WRONG = [
    (
        "one buffer for all calls",
        f"return {RESULT}",
        "key = mine.dtype, *mine.shape[1:]\n"
        "kept = in_order.__dict__.setdefault(key, mine.new_empty(999, *mine.shape[1:]))\n"
        f"kept[:size] = {RESULT}\n"
        "return kept[:size]",
        "two calls gave answers in the same memory",
    ),
    (
        "its own tensor, where it is alone",
        "world = dist.get_world_size()",
        "world = dist.get_world_size()\nif world == 1:\n    return mine",
        "returned memory that it was given",
    ),
    (
        "hides what is not finite",
        f"return {RESULT}",
        f"return {RESULT}.nan_to_num()",
        "they stay what they are",
    ),
    (
        "an output that only NCCL would fill",
        "mine.new_empty(world * rows, *mine.shape[1:])",
        "mine.new_empty(world, *padded.shape)",
        "gloo fills one dimension: an output of N * n rows",
    ),
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
        "even a rank without samples",
    ),
    ("a list", RESULT, f"{RESULT}.tolist()", "returned a list"),
]
RIGHT = [
    (
        "a copy, where it is alone",
        "world = dist.get_world_size()",
        "world = dist.get_world_size()\nif world == 1:\n    return mine.clone()",
    ),
    ("lists", *IMPORT, *LISTS, DEALT, "torch.stack(every, 1).flatten(0, 1)"),
    (
        "row by row",
        *IMPORT,
        *LISTS,
        RESULT,
        "torch.stack([every[i % world][i // world] for i in range(size)])",
    ),
]
