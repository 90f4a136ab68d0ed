"""10.4: the tensor that was never sent."""

import random
from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.values import lists_of_ints

TITLE = "the tensor that was never sent"
PROVEN = (
    "every tensor in exactly one bucket, in order, whether or not the sizes fill it",
    "no bucket above the cap, except for a single large tensor; none empty",
)
OURS = '''"""Buckets that leave no tensor behind: what is packed moves them on, not the room."""


def buckets(sizes: list[int], cap: int) -> list[list[int]]:
    """The numbers of the tensors in each bucket."""
    found, room = [], 0
    for number, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = cap
        found[-1].append(number)
        room -= size
    return found
'''
PLANS = [([3, 3, 4], 4), ([2, 2], 4), ([5, 1, 1], 3), ([1, 9, 1], 4), ([4], 4), ([0, 3, 0], 3)]
PLANS += [([], 4), ([0, 0, 5], 5), ([6, 0, 0], 5)]


def cases(buckets: Callable) -> None:
    """The tensors in each bucket, for models small and large."""
    chance = random.Random(10)
    models = [
        ([chance.randint(0, 40) for _ in range(chance.randint(1, 30))], chance.randint(20, 60))
        for _ in range(20)
    ]
    for sizes, cap in PLANS + models:
        call = f"buckets({sizes}, cap={cap})"
        got = called(call, buckets, list(sizes), cap)
        found, expected = lists_of_ints(got), planned(sizes, cap)
        if found != expected:
            said = f"{call} returned {got if found is None else found}, expected {expected}"
            raise Wrong(said, hint(found, sizes, cap))


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


def hint(got: list[list[int]] | None, sizes: list[int], cap: int) -> str:
    """The question that fits wrong buckets."""
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


NEXT = "if not found or size > room:"

WRONG = [
    (
        "as published",
        """
def buckets(sizes, cap):
    found, offset, next_tensor = [], 0, 0
    while offset < sum(sizes):
        room, bucket = min(cap, sum(sizes) - offset), []
        for number in range(next_tensor, len(sizes)):
            if sizes[number] > room:
                break
            bucket.append(number)
            room -= sizes[number]
            next_tensor += 1
        found.append(bucket)
        offset += cap
    return found
""",
        "Does `offset` count",
    ),
    (
        "leaves out what is too large",
        NEXT,
        f"if size > cap:\n    continue\n{NEXT}",
        "How should it be sent?",
    ),
    ("never quite full", "size > room", "size >= room", "A bucket may be"),
    ("above the cap", "size > room", "room <= 0", "Look before you add"),
    ("a tensor a bucket", NEXT, "if True:", "A bucket may be exactly full"),
    ("backwards", "return found", "return [each[::-1] for each in found]", "not in order"),
    ("an empty one at the end", "return found", "return [*found, []]", "An empty bucket"),
    ("numbers, not lists", "return found", "return len(found)", "a list of lists"),
    ("floats", "->", "lambda buckets: [[float(n) for n in bucket] for bucket in buckets]", "ints"),
    ("an array", "->", "numpy.array", "raised ValueError"),
]
RIGHT = [
    (
        "repaired where it was wrong",
        """
def buckets(sizes, cap):
    found, next_tensor = [], 0
    while next_tensor < len(sizes):
        room, bucket = cap, []
        for number in range(next_tensor, len(sizes)):
            if sizes[number] > room and bucket:
                break
            bucket.append(number)
            room -= sizes[number]
            next_tensor += 1
        found.append(bucket)
    return found
""",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a generator of ranges", "->", "lambda found: (range(b[0], b[-1] + 1) for b in found)"),
]
