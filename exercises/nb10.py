"""Notebook 10, talking less: top-k, two thin matrices, a lost tensor, the outer gradient."""

import random
from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.failures import lonely
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import lists_of_ints

RANKS = (2, 3, 4, 1)
PLANS = [([3, 3, 4], 4), ([2, 2], 4), ([5, 1, 1], 3), ([1, 9, 1], 4), ([4], 4), ([0, 3, 0], 3)]
TORCHS = ("PowerSGDState", "powerSGD_hook", "batched_powerSGD_hook", "svd_lowrank", "pca_lowrank")
LONELY = lonely("Does every rank call every collective, with messages of the same size?")


@exercise("10.1", "top-k with error feedback", file="exercise_10_1.py")
def check_10_1() -> list[str]:
    """The mean, what is kept, and every byte, on several ranks and in a group."""
    probe_each("probe_10_1.py", RANKS, hint=LONELY)
    return [
        "1 to 4 ranks and a group of two, float32 and float64: the mean of what was sent",
        "what is sent and what is kept add up to the gradient and what was kept before",
        "one all-gather of k values and k int32 places, and not a byte more",
    ]


@exercise("10.2", "two thin matrices", file="exercise_10_2.py", without=TORCHS)
def check_10_2() -> list[str]:
    """The mean, what is kept, the next q, and every byte."""
    probe_each("probe_10_2.py", RANKS, hint=LONELY)
    return [
        "1 to 4 ranks and a group of two, float32 and float64: p times the mean q, and the next q",
        "each rank keeps what its own two matrices left out",
        "two all-reduces, of p and of q",
    ]


@exercise("10.3", "the sign of the outer step", file="exercise_10_3.py")
def check_10_3() -> list[str]:
    """The gradient for the outer SGD, and every byte."""
    probe_each("probe_10_3.py", RANKS, hint=LONELY)
    return [
        "1 to 4 ranks and a group of two, float32 and float64: before minus the mean of after",
        "one all-reduce, as long as the parameters",
    ]


@exercise("10.4", "the tensor that was never sent")
def check_10_4(buckets: Callable) -> list[str]:
    """The tensors in each bucket, for models small and large."""
    chance = random.Random(10)
    models = [
        ([chance.randint(0, 40) for _ in range(chance.randint(1, 30))], chance.randint(20, 60))
        for _ in range(20)
    ]
    for sizes, cap in PLANS + models:
        call = f"buckets({sizes}, cap={cap})"
        got = called(call, buckets, list(sizes), cap)
        expected = planned(sizes, cap)
        if (found := lists_of_ints(got)) != expected:
            hint = _plan_hint(found, sizes, cap)
            raise Wrong(f"{call} returned {got}, expected {expected}", hint)
    return [
        "every tensor in exactly one bucket, in order, whether or not the sizes fill it",
        "no bucket above the cap, except for a single large tensor; none empty",
    ]


def planned(sizes: list[int], cap: int, strict: bool = False) -> list[list[int]]:
    """The numbers of the tensors in each bucket; `strict`: a bucket stays below its cap."""
    made: list[list[int]] = []
    held = 0
    for number, size in enumerate(sizes):
        if not made or held + size + strict > cap:
            made.append([])
            held = 0
        made[-1].append(number)
        held += size
    return made


def _plan_hint(got: list[list[int]] | None, sizes: list[int], cap: int) -> str:
    if got is None:
        return "Return a list of lists of numbers (ints), one list per bucket."
    packed = [number for bucket in got for number in bucket]
    if missing := [number for number in range(len(sizes)) if number not in packed]:
        if any(sizes[number] > cap for number in missing):
            return (
                f"Tensor {missing[0]} is missing, and larger than the cap. How should it be sent?"
            )
        return f"Tensor {missing[0]} is missing. Does `offset` count the room, or what is packed?"
    if set(packed) - set(range(len(sizes))):
        return f"There are {len(sizes)} tensors, numbered from 0."
    if len(packed) != len(set(packed)):
        return "A tensor is in the buckets twice. When does `next_tensor` move on?"
    if packed != sorted(packed):
        return "The tensors are not in order."
    if [] in got:
        return "An empty bucket is an empty message. When do you begin a new bucket?"
    if got == planned(sizes, cap, strict=True):
        return "A bucket may be exactly full."
    if any(len(bucket) > 1 and sum(sizes[n] for n in bucket) > cap for bucket in got):
        return "A bucket is above the cap. Look before you add, not after."
    return "Yours closes a bucket too early. Does the next tensor fit?"
