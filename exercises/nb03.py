"""Notebook 03, DDP: buckets, a hook on gradients, a sampler."""

import random
import traceback
from collections.abc import Callable
from typing import Any

from torch.utils.data import DistributedSampler

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, hint_for, kind
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import lists_of_ints
from course_utils.notebook.files import load_worker

BUCKETS = [  # sizes in the model's order, cap, first cap
    ([3, 4, 4, 4, 5], 8, 5),
    ([1, 1, 1, 1, 1], 2, 2),
    ([3, 5, 2, 7, 1], 8, 4),
    ([2, 10, 2], 8, 8),
    ([9], 4, 2),
    ([5, 5, 5], 20, 1),
    ([], 8, 4),
]
SHARES = [(8, 2, 0), (10, 4, 0), (10, 4, 1), (7, 3, 5), (2, 5, 0), (6, 1, 2)]  # size, ranks, epoch
TORCHS = ("DistributedDataParallel", "DDP", "register_comm_hook")


@exercise(
    "03.2",
    "buckets under a cap",
    file="exercise_03_2.py",
    without=("_compute_bucket_assignment_by_size",),
)
def check_03_2() -> list[str]:
    """The parameters in each bucket, for several models."""
    my_buckets = _defined("exercise_03_2.py", "my_buckets")
    chance = random.Random(3)
    models = [
        ([chance.randint(1, 99) for _ in range(chance.randint(6, 30))], chance.randint(60, 150))
        for _ in range(10)
    ]
    for sizes, cap, first_cap in BUCKETS + [(sizes, cap, cap // 3) for sizes, cap in models]:
        call = f"my_buckets({sizes}, cap={cap}, first_cap={first_cap})"
        got = called(call, my_buckets, list(sizes), cap, first_cap)
        expected = buckets(sizes, cap, first_cap)
        if lists_of_ints(got) != expected:
            hint = _bucket_hint(lists_of_ints(got), sizes, cap, first_cap)
            raise Wrong(f"{call} returned {got}, expected {expected}", hint)
    return [
        "the last parameter first, each in one bucket, none empty",
        "no bucket above its cap, except for a single large parameter; the first cap is smaller",
    ]


def _defined(file: str, name: str) -> Callable:
    """The function of that name in a student's worker file."""

    def loaded() -> Any:
        try:
            return load_worker(file)
        except NotImplementedError:
            raise
        except (Exception, SystemExit) as error:
            places = traceback.extract_tb(error.__traceback__)
            lines = [place.lineno for place in places if place.filename.endswith(file)]
            where = (lines or [getattr(error, "lineno", "?")])[-1]
            said = f"workers/{file}, line {where}: {type(error).__name__}: {error}"
            ended = "Is there an exit() in it?" if isinstance(error, SystemExit) else ""
            raise Wrong(said, ended) from None

    module = called(f"workers/{file}", loaded)
    if not hasattr(module, name):
        raise Wrong(f"workers/{file} defines no {name}", "Keep the name of the stub.")
    return getattr(module, name)


def buckets(sizes: list[int], cap: int, first_cap: int, passing: bool = False) -> list[list[int]]:
    """The places of the parameters, by bucket; `passing`: the last one may exceed the cap."""
    made: list[list[int]] = []
    room = 0
    for place in reversed(range(len(sizes))):
        if not made or (room <= 0 if passing else sizes[place] > room):
            room = cap if made else first_cap
            made.append([])
        made[-1].append(place)
        room -= sizes[place]
    return made


def _bucket_hint(got: list[list[int]] | None, sizes: list[int], cap: int, first_cap: int) -> str:
    if got is None:
        return "Return a list of lists of places (ints), one list per bucket."
    if [] in got:
        return "An empty bucket is an empty message. When do you begin a new bucket?"
    expected = buckets(sizes, cap, first_cap)
    if sorted(place for bucket in got for place in bucket) != list(range(len(sizes))):
        return "Each parameter belongs in exactly one bucket. Which one is missing, or there twice?"
    mirrored = buckets(sizes[::-1], cap, first_cap)
    if got == [[len(sizes) - 1 - place for place in bucket] for bucket in mirrored]:
        return "Backward begins at the last layer: whose gradient is complete first?"
    if [sorted(bucket) for bucket in got] == [sorted(bucket) for bucket in expected]:
        return "Right buckets, wrong order inside them. Whose gradient is complete first?"
    if sorted(map(sorted, got)) == sorted(map(sorted, expected)):
        return "Right buckets, but not in the order in which they are sent. Which is full first?"
    closes = "Yours closes a bucket when its cap is passed. Look before you add, not after."
    first = "The first bucket has its own cap. When should the first message leave?"
    others = [
        (closes, buckets(sizes, cap, first_cap, passing=True)),
        (
            "A bucket may be exactly full. When is it closed?",
            buckets(sizes, cap - 1, first_cap - 1),
        ),
        (first, buckets(sizes, cap, cap)),
        ("Only the first bucket has the small cap.", buckets(sizes, first_cap, first_cap)),
    ]
    otherwise = "Go from the last parameter to the first. When do you close a bucket?"
    return hint_for(got, others, otherwise, 0)


@exercise("03.1", "a hook that averages the gradient", file="exercise_03_1.py", without=TORCHS)
def check_03_1() -> list[str]:
    """Gradients, parameters and messages of a small model with hooks, on several ranks."""
    probe_each("probe_03_1.py", (2, 3, 4, 1))
    return [
        "1 to 4 ranks, float32 and float64: every gradient is the mean, and no parameter moved",
        "a tied matrix is sent once, a frozen bias not at all: one all-reduce per gradient",
    ]


@exercise("03.3", "a sampler with padding and epochs", without=("DistributedSampler",))
def check_03_3(my_share: Callable) -> list[str]:
    """The indices of every rank, compared with torch's sampler."""
    for seed in (3, 11):
        for size, ranks, epoch in SHARES:
            for rank in range(ranks):
                _check_share(my_share, size, ranks, rank, epoch, seed)
    return [
        "every index as in torch's sampler, on 1 to 5 ranks, also with fewer samples than ranks",
        "the same number on each rank, and a new order in each epoch",
    ]


def _check_share(
    my_share: Callable, size: int, ranks: int, rank: int, epoch: int, seed: int
) -> None:
    call = f"my_share({size}, ranks={ranks}, rank={rank}, epoch={epoch}, seed={seed})"
    got = called(call, my_share, size, ranks, rank, epoch, seed)
    expected = share(size, ranks, rank, epoch, seed)
    if isinstance(got, list) and got and (other := [x for x in got if type(x) is not int]):
        raise Wrong(
            f"{call} returned a list that holds {kind(other[0])}, expected whole numbers",
            "Indices are ints: .tolist() turns a tensor into a list of them.",
        )
    if not isinstance(got, list) or got != expected:
        hint = _share_hint(got, size, ranks, rank, epoch, seed)
        raise Wrong(f"{call} returned {got}, expected {expected}", hint)


def share(size: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """What torch's sampler gives a rank."""
    sampler = DistributedSampler(range(size), ranks, rank, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def _share_hint(got: Any, size: int, ranks: int, rank: int, epoch: int, seed: int) -> str:
    expected = share(size, ranks, rank, epoch, seed)
    everyone = [share(size, ranks, other, epoch, seed) for other in range(ranks)]
    order = [index for turn in zip(*everyone, strict=True) for index in turn]
    length = len(expected)
    if not isinstance(got, list):
        return "Return a list of numbers."
    if ranks > 1 and got == order[rank * length : (rank + 1) * length]:
        return "Yours cuts the list into pieces. torch deals it out like cards, one at a time."
    if len(got) != length:
        divides = f"Each rank takes {length} of them here."
        uneven = "All ranks must take the same number of steps. What if N does not divide the size?"
        return uneven if size % ranks else divides
    if epoch and got == share(size, ranks, rank, 0, seed):
        return "That is epoch 0's order. Where does the epoch come in?"
    if got[:-1] == expected[:-1] or (size < ranks and rank >= size):
        return "Only the padding is wrong. With which samples does torch fill up the list?"
    if got == list(range(size))[rank::ranks]:
        return "Yours is not shuffled. Which generator and which seed do you need?"
    if got == share(size, ranks, rank, epoch, seed + rank):
        return "In yours, each rank has its own order: then some samples come twice."
    return "The order is torch.randperm(size) with a generator seeded with seed + epoch."
