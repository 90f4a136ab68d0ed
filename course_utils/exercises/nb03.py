"""Notebook 03, DDP: buckets, a hook on gradients, a sampler, exact accuracy."""

import math
from collections.abc import Callable
from typing import Any

from torch.utils.data import DistributedSampler

from course_utils.exercises.calls import called
from course_utils.exercises.checking import Wrong, exercise, probe

BUCKETS = [  # sizes in the model's order, cap, first cap
    ([3, 4, 4, 4, 5], 8, 5),
    ([1, 1, 1, 1, 1], 2, 2),
    ([3, 5, 2, 7, 1], 8, 4),
    ([2, 10, 2], 8, 8),
    ([9], 4, 2),
    ([5, 5, 5], 20, 1),
    ([], 8, 4),
]
SHARES = [  # size, ranks, epoch
    (8, 2, 0),
    (10, 4, 0),
    (10, 4, 1),
    (7, 3, 5),
    (2, 5, 0),
    (6, 1, 2),
]
MOST_COLLECTIVES, MOST_BYTES = 2, 32


@exercise("03.1", "buckets under a cap")
def check_03_1(my_buckets: Callable) -> list[str]:
    """Which parameters share a bucket, for several models."""
    for sizes, cap, first_cap in BUCKETS:
        call = f"my_buckets({sizes}, cap={cap}, first_cap={first_cap})"
        got = called(call, my_buckets, list(sizes), cap, first_cap)
        expected = buckets(sizes, cap, first_cap)
        if not _is_lists(got) or got != expected:
            hint = _bucket_hint(got, sizes, cap, first_cap)
            raise Wrong(f"{call} returned {got}, expected {expected}", hint)
    return [
        "the last parameter first, each in one bucket, none empty",
        "no bucket above its cap, unless a single parameter is; the first has a cap of its own",
    ]


def buckets(sizes: list[int], cap: int, first_cap: int, passing: bool = False) -> list[list[int]]:
    """The places of the parameters, bucket by bucket; `passing`: a cap may be passed once."""
    made: list[list[int]] = []
    room = 0
    for place in reversed(range(len(sizes))):
        if not made or (room <= 0 if passing else sizes[place] > room):
            room = cap if made else first_cap
            made.append([])
        made[-1].append(place)
        room -= sizes[place]
    return made


def _is_lists(got: Any) -> bool:
    return isinstance(got, list) and all(isinstance(each, list) for each in got)


def _bucket_hint(got: Any, sizes: list[int], cap: int, first_cap: int) -> str:
    """The question that fits wrong buckets."""
    if not _is_lists(got):
        return "A list of lists of places, one list a bucket."
    if [] in got:
        return "An empty bucket is an empty message. When is yours begun?"
    expected = buckets(sizes, cap, first_cap)
    if sorted(place for bucket in got for place in bucket) != list(range(len(sizes))):
        return "Each parameter is in exactly one bucket. Which is missing, or there twice?"
    mirrored = buckets(sizes[::-1], cap, first_cap)
    if got == [[len(sizes) - 1 - place for place in bucket] for bucket in mirrored]:
        return "Backward begins at the last layer: whose gradient is complete first?"
    if [sorted(bucket) for bucket in got] == [sorted(bucket) for bucket in expected]:
        return "The right company, not in the right order. Whose gradient is complete first?"
    if sorted(map(sorted, got)) == sorted(map(sorted, expected)):
        return "The right buckets, not in the order in which they are sent. Which is full first?"
    if got == buckets(sizes, cap, first_cap, passing=True):
        return "Yours closes a bucket when its cap is passed. Look before you add, not after."
    if got == buckets(sizes, cap - 1, first_cap - 1):
        return "A bucket may be exactly full. When is it closed?"
    if got == buckets(sizes, cap, cap):
        return "The first bucket has a cap of its own. When should the first message leave?"
    if got == buckets(sizes, first_cap, first_cap):
        return "Only the first bucket has the small cap."
    return "Go from the last parameter to the first and add up the sizes. When is a bucket closed?"


@exercise("03.2", "a hook that averages the gradient", file="exercise_03_2.py")
def check_03_2() -> list[str]:
    """Gradients, parameters and messages of a small model with hooks, on several ranks."""
    for ranks in (2, 3, 4, 1):
        reports = probe("probe_03_2.py", ranks, timeout=60)
        for look in (_check_gradients, _check_calls):  # right on one rank may be wrong on another
            for report in reports:
                look(ranks, report)
    return [
        "1, 2, 3 and 4 ranks: after backward every gradient is the mean, and no parameter moved",
        "a tied matrix is sent once, a frozen bias is not: one all-reduce for each gradient",
    ]


def _in_step(ranks: int, found: dict[str, Any]) -> str:
    return f"{ranks} rank{'s' * (ranks > 1)}, step {found['number']}: on rank {found['rank']}"


def _check_gradients(ranks: int, found: dict[str, Any]) -> None:
    where = _in_step(ranks, found)
    if found["moved"]:
        raise Wrong(
            f"{where} backward changed a parameter",
            "The hook is given the parameter. What of it has to be averaged?",
        )
    for name, got in found["gradients"].items():
        expected, own = found["expected"][name], found["own"][name]
        if got is None or not all(map(_close, got, expected)):
            answer = f"{where} the gradient of {name} is {_numbers(got)}"
            hint = _gradient_hint(got, expected, own, ranks)
            raise Wrong(f"{answer}, expected {_numbers(expected)}", hint)


def _check_calls(ranks: int, found: dict[str, Any]) -> None:
    calls, trainable = found["calls"], found["trainable"]
    if ranks == 1 and not calls:
        return  # there is nobody to send to
    if calls != {"all_reduce": trainable}:
        hint = "A hook for each parameter that is trained, registered once. How many have you?"
        if set(calls) != {"all_reduce"}:
            hint = "Which collective alone gives every rank the sum?"
        said = ", ".join(f"{count} {name}" for name, count in calls.items()) or "nothing"
        raise Wrong(
            f"{_in_step(ranks, found)} backward called {said}, expected {trainable} all_reduce: "
            "one for each gradient",
            hint,
        )


def _gradient_hint(
    got: list[float] | None, expected: list[float], own: list[float], ranks: int
) -> str:
    if got is None:
        return "It is gone. Does your hook put back what it has averaged?"
    if all(map(_close, got, own)):
        return "That is this rank's own gradient. Has the sum come back into `.grad`?"
    if all(_close(a, ranks * b) for a, b in zip(got, expected, strict=True)):
        return "That is the sum over the ranks. What makes it a mean?"
    if all(_close(ranks * a, b) for a, b in zip(got, expected, strict=True)):
        return "Divided twice: by the hook, and by the mean that it asked for?"
    return "Write down the gradient of each rank. Which of them are in yours, and how often?"


@exercise("03.3", "a sampler with padding and epochs")
def check_03_3(my_share: Callable) -> list[str]:
    """The indices of every rank, beside torch's sampler."""
    for size, ranks, epoch in SHARES:
        for rank in range(ranks):
            call = f"my_share({size}, ranks={ranks}, rank={rank}, epoch={epoch}, seed=3)"
            got = called(call, my_share, size, ranks, rank, epoch, 3)
            expected = share(size, ranks, rank, epoch)
            if not isinstance(got, list) or got != expected:
                hint = _share_hint(got, size, ranks, rank, epoch)
                raise Wrong(f"{call} returned {got}, expected {expected}", hint)
    return [
        "every index as torch's sampler gives it, on 1 to 5 ranks, more ranks than samples too",
        "equally many for each rank, and a new order for each epoch",
    ]


def share(size: int, ranks: int, rank: int, epoch: int, seed: int = 3) -> list[int]:
    """What torch's sampler gives a rank."""
    sampler = DistributedSampler(range(size), ranks, rank, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def _share_hint(got: Any, size: int, ranks: int, rank: int, epoch: int) -> str:
    """The question that fits a wrong share."""
    expected = share(size, ranks, rank, epoch)
    everyone = [share(size, ranks, each, epoch) for each in range(ranks)]
    order = [index for turn in zip(*everyone, strict=True) for index in turn]
    length = len(expected)
    if not isinstance(got, list):
        return "A list of numbers."
    if ranks > 1 and got == order[rank * length : (rank + 1) * length]:
        return "Yours cuts the list in pieces. torch deals it out like cards: one to each in turn."
    if len(got) != length:
        return "All ranks must take equally many steps. What if the samples do not divide?"
    if epoch and got == share(size, ranks, rank, 0):
        return "That is epoch 0's order. Where does the epoch come in?"
    if got[:-1] == expected[:-1] or (size < ranks and rank >= size):
        return "Only the padding is wrong. With which samples does torch fill up the list?"
    if got == list(range(size))[rank::ranks]:
        return "Not shuffled. With which generator, and which seed?"
    if got == share(size, ranks, rank, epoch, 3 + rank):
        return "Each rank has an order of its own in yours: then some samples come twice."
    return "The order is torch.randperm(size) with a generator seeded with seed + epoch."


@exercise("03.4", "exact accuracy over ranks", file="exercise_03_4.py")
def check_03_4() -> list[str]:
    """The value on each rank, and what was sent for it, with padded shares."""
    for ranks in (1, 2, 3, 4):
        try:
            reports = probe("probe_03_4.py", ranks, timeout=40)
        except Wrong as wrong:
            question = "Does every rank come to each collective, one that has only padding too?"
            raise Wrong(wrong.message, wrong.hint or question * (ranks > 1)) from None
        for report in reports:
            _check_accuracy(ranks, report)
    return [
        "1, 2, 3 and 4 ranks, sizes that divide and do not, a rank with nothing but padding",
        f"the same number on each rank, at most {MOST_COLLECTIVES} collectives and "
        f"{MOST_BYTES} bytes a rank",
    ]


def _check_accuracy(ranks: int, found: dict[str, Any]) -> None:
    size, answer = found["size"], found["answer"]
    samples = f"{size} sample{'s' * (size > 1)}"
    where = f"{ranks} rank{'s' * (ranks > 1)}, {samples}: rank {found['rank']}"
    if answer is None:
        raise Wrong(
            f"{where} returned a {found['kind']}, expected a float",
            "Every rank needs the number, as a plain Python number: what does yours return there?",
        )
    right = [index % 7 not in (1, 3, 5) for index in range(size)]  # as in probe_03_4.py
    expected = sum(right) / size
    if not math.isclose(answer, expected, rel_tol=1e-6, abs_tol=1e-9):
        said = f"{where} returned {answer:.4g}, expected {expected:.4g}"
        said += f" (wrong are samples {[i for i in range(size) if not right[i]]})"
        raise Wrong(said, _accuracy_hint(answer, right, ranks, found["rank"]))
    if found["collectives"] > MOST_COLLECTIVES or found["sent"] > MOST_BYTES:
        raise Wrong(
            f"{where} took part in {found['collectives']} collectives with {found['sent']} bytes, "
            f"allowed are {MOST_COLLECTIVES} with {MOST_BYTES} bytes",
            "Which two numbers of a rank are all that the others need to know?",
        )


def _accuracy_hint(answer: float, right: list[bool], ranks: int, rank: int) -> str:
    """The question that fits a wrong accuracy; the mistakes are tried one after another."""
    size, length = len(right), -(-len(right) // ranks)
    padded = [right[i % size] for i in range(length * ranks)]
    shares = [padded[each::ranks] for each in range(ranks)]
    real = [right[each::ranks] for each in range(ranks)]
    own = [sum(each) / max(1, len(each)) for each in real]
    mistakes = {
        "Padded samples count twice in yours. Which of this rank's samples are padding?": [
            sum(padded) / len(padded)
        ],
        "That is this rank's own. Who tells it of the others?": [
            own[rank],
            sum(shares[rank]) / length,
        ],
        "That is a mean of the ranks' means. Whose samples weigh too much in it?": [
            sum(own) / ranks
        ],
        "Right sum, wrong count: how many samples are there, without padding?": [
            sum(right) / len(padded)
        ],
        "Right count, wrong sum: is padding among the samples you call right?": [
            sum(padded) / size
        ],
        "Yours drops the last sample of every rank. On which ranks is it padding?": [
            sum(map(sum, (each[: size // ranks] for each in shares)))
            / max(1, size // ranks * ranks)
        ],
        "Divided by the number of ranks without adding up first?": [
            own[rank] / ranks,
            sum(shares[rank]) / length / ranks,
        ],
    }
    for question, values in mistakes.items():
        if any(math.isclose(answer, value, rel_tol=1e-6) for value in values):
            return question
    return "Sample k of rank r is number r + k N of the data set. Which of them are beyond its end?"


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _numbers(values: list[float] | None) -> str:
    return "None" if values is None else "[" + ", ".join(f"{value:.4g}" for value in values) + "]"
