"""03.3: a sampler with padding and epochs."""

from collections.abc import Callable

import torch
from torch.utils.data import DistributedSampler

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, kind
from course_utils.checking.values import as_number, listed

TITLE = "a sampler with padding and epochs"
PROVEN = (
    "every index as in torch's sampler, on 1 to 5 ranks, also with fewer samples than ranks",
    "the same number on each rank, and a new order in each epoch",
)
WITHOUT = ("DistributedSampler",)
OURS = '''"""A sampler with padding and epochs."""

import torch


def my_share(size: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """The indices that this rank is given in this epoch."""
    generator = torch.Generator().manual_seed(seed + epoch)  # the same on all ranks
    order = torch.randperm(size, generator=generator).tolist()
    total = -(-size // ranks) * ranks  # rounded up to what divides
    order = [order[place % size] for place in range(total)]  # from the beginning once more
    return order[rank::ranks]
'''
SHARES = [(8, 2, 0), (10, 4, 0), (10, 4, 1), (7, 3, 5), (2, 5, 0), (6, 1, 2)]  # size, ranks, epoch


def cases(my_share: Callable) -> None:
    """The indices of every rank, compared with torch's sampler."""
    for seed in (3, 11):
        for size, ranks, epoch in SHARES:
            for rank in range(ranks):
                look(my_share, size, ranks, rank, epoch, seed)


def look(my_share: Callable, size: int, ranks: int, rank: int, epoch: int, seed: int) -> None:
    """One rank's share."""
    call = f"my_share({size}, ranks={ranks}, rank={rank}, epoch={epoch}, seed={seed})"
    answer = called(call, my_share, size, ranks, rank, epoch, seed)
    got = None if torch.is_tensor(answer) else listed(answer)
    found = None if got is None else list(map(as_number, got))
    if found and (other := [each for each in found if type(each) is not int]):
        raise Wrong(
            f"{call} returned a list that holds {kind(other[0])}, expected whole numbers",
            "Indices are ints: .tolist() turns a tensor into a list of them.",
        )
    if found != (expected := share(size, ranks, rank, epoch, seed)):
        said = f"{call} returned {answer if found is None else found}, expected {expected}"
        raise Wrong(said, hint(found, size, ranks, rank, epoch, seed))


def share(size: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """What torch's sampler gives a rank."""
    sampler = DistributedSampler(range(size), ranks, rank, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def hint(got: list | None, size: int, ranks: int, rank: int, epoch: int, seed: int) -> str:
    """The question that fits wrong indices."""
    expected = share(size, ranks, rank, epoch, seed)
    everyone = [share(size, ranks, other, epoch, seed) for other in range(ranks)]
    order = [index for turn in zip(*everyone, strict=True) for index in turn]
    length = len(expected)
    if got is None:
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


PADDED = "order = [order[place % size] for place in range(total)]"
DEALT = "order[rank::ranks]"

WRONG = [
    (
        "one list for all calls",
        f"return {DEALT}",
        f"kept = my_share.__dict__.setdefault('kept', [])\nkept[:] = {DEALT}\nreturn kept",
        "changed what the call before had returned",
    ),
    (
        "the global generator",
        "generator = torch.Generator().manual_seed",
        "torch.manual_seed",
        "torch.randperm(size, generator=generator)",
        "torch.randperm(size)",
        "changed the global random state",
    ),
    ("floats", DEALT, f"[float(index) for index in {DEALT}]", "a list that holds a float"),
    ("not padded", PADDED, "pass", "the same number of steps"),
    (
        "into pieces",
        DEALT,
        "order[rank * total // ranks :][: total // ranks]",
        "like cards",
    ),
    ("no epoch", "seed + epoch", "seed", "epoch 0's order"),
    ("an order for each rank", "seed + epoch", "seed + epoch + rank", "its own order"),
    (
        "not shuffled",
        "torch.randperm(size, generator=generator).tolist()",
        "list(range(size))",
        "not shuffled",
    ),
    (
        "padded with the last",
        PADDED,
        "order += [order[-1]] * (total - size)",
        "Only the padding is wrong",
    ),
    (
        "padded once at most",
        PADDED,
        "order += order[: total - size]",
        "the same number of steps",
    ),
    ("a tensor", DEALT, "torch.tensor(order)[rank::ranks]", "a list of numbers"),
]
RIGHT = [
    ("numpy's numbers", "->", "numpys"),
    ("a generator", DEALT, f"(each for each in {DEALT})"),
    ("a tuple", "->", "tuple"),
    ("numbers of torch", DEALT, f"list(torch.tensor({DEALT}))"),
]
