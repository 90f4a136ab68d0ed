"""03.2: buckets as PyTorch cuts them."""

import random
from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, hint_for
from course_utils.checking.values import lists_of_ints

TITLE = "buckets as PyTorch cuts them"
PROVEN = (
    "the last parameter first, each in one bucket, none empty",
    "a bucket is closed as soon as it has reached its cap; the first cap is smaller",
)
WITHOUT = ("_compute_bucket_assignment_by_size",)
OURS = '''"""Buckets as PyTorch cuts them."""


def my_buckets(sizes: list[int], cap: int, first_cap: int) -> list[list[int]]:
    """The places of the parameters, bucket by bucket in the order in which they are sent."""
    buckets: list[list[int]] = []
    missing = 0  # bytes until the last bucket reaches its cap
    for place in reversed(range(len(sizes))):
        if missing <= 0:
            missing = cap if buckets else first_cap
            buckets.append([])
        buckets[-1].append(place)
        missing -= sizes[place]
    return buckets
'''
MODELS = [  # sizes in the model's order, cap, first cap
    ([3, 5, 2, 7, 1], 8, 4),
    ([4, 3, 4, 2, 1], 8, 2),
    ([1, 1, 1, 1, 1], 2, 2),
    ([3, 4, 4, 4, 5], 8, 5),
    ([2, 10, 2], 8, 8),
    ([9], 4, 2),
    ([5, 5, 5], 20, 1),
    ([], 8, 4),
]


def cases(my_buckets: Callable) -> None:
    """The parameters in each bucket, for several models."""
    chance = random.Random(3)
    models = [
        ([chance.randint(1, 99) for _ in range(chance.randint(6, 30))], chance.randint(60, 150))
        for _ in range(10)
    ]
    for sizes, cap, first_cap in MODELS + [(sizes, cap, cap // 3) for sizes, cap in models]:
        call = f"my_buckets({sizes}, cap={cap}, first_cap={first_cap})"
        got = called(call, my_buckets, list(sizes), cap, first_cap)
        found, expected = lists_of_ints(got), buckets(sizes, cap, first_cap)
        if found != expected:
            said = f"{call} returned {got if found is None else found}, expected {expected}"
            raise Wrong(said, hint(found, sizes, cap, first_cap))


def buckets(sizes: list[int], cap: int, first_cap: int, within: bool = False) -> list[list[int]]:
    """The places of the parameters, by bucket; `within`: closed before the cap is exceeded."""
    made: list[list[int]] = []
    room = 0
    for place in reversed(range(len(sizes))):
        if not made or (sizes[place] > room if within else room <= 0):
            room = cap if made else first_cap
            made.append([])
        made[-1].append(place)
        room -= sizes[place]
    return made


def hint(got: list[list[int]] | None, sizes: list[int], cap: int, first_cap: int) -> str:
    """The question that fits wrong buckets."""
    if got is None:
        return "Return a list of lists of places (ints), one list per bucket."
    if got == [[]] and not sizes:
        return "Without parameters there is nothing to send: return an empty list."
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
    closes = "Yours closes a bucket before it would exceed its cap. Look after you add, not before."
    first = "The first bucket has its own cap. When should the first message leave?"
    if sizes[-1] >= first_cap:
        first = "The last parameter alone reaches the first cap: it gets the first bucket alone."
    others = [
        (closes, buckets(sizes, cap, first_cap, within=True)),
        (
            "A bucket may be exactly full. When is it closed?",
            buckets(sizes, cap + 1, first_cap + 1),
        ),
        (first, buckets(sizes, cap, cap)),
        ("Only the first bucket has the small cap.", buckets(sizes, first_cap, first_cap)),
    ]
    otherwise = "Go from the last parameter to the first. When do you close a bucket?"
    return hint_for(got, others, otherwise, 0)


BACKWARDS = "reversed(range(len(sizes)))"
ROOM = "cap if buckets else first_cap"
FULL = "if missing <= 0:"
RETURN = "return buckets"

WRONG = [
    (
        "one list for all calls",
        RETURN,
        "kept = my_buckets.__dict__.setdefault('kept', [])\nkept[:] = buckets\nreturn kept",
        "changed what the call before had returned",
    ),
    (
        "places on the meta device",
        "->",
        "lambda buckets: [[torch.tensor(n, device='meta') for n in each] for each in buckets]",
        "Return a list of lists of places",
    ),
    (
        "complex places",
        "->",
        "lambda buckets: [[complex(n) for n in each] for each in buckets]",
        "Return a list of lists of places",
    ),
    (
        "nearly whole places",
        "->",
        "lambda buckets: [[n + 0.4 for n in each] for each in buckets]",
        "Return a list of lists of places",
    ),
    (
        "the caller's list is emptied",
        RETURN,
        "sizes.clear()\nreturn buckets",
        "changed its arguments",
    ),
    ("first parameter first", BACKWARDS, "range(len(sizes))", "begins at the last layer"),
    (
        "order within a bucket",
        RETURN,
        "return [sorted(each) for each in buckets]",
        "Whose gradient is complete first",
    ),
    ("order of the buckets", RETURN, "return buckets[::-1]", "Which is full first"),
    (
        "a cap that is never exceeded",
        FULL,
        "if not buckets or sizes[place] > missing:",
        "Look after you add, not before",
    ),
    ("no small first bucket", ROOM, "cap", "its own cap"),
    (
        "no bucket for a parameter above the first cap",
        ROOM,
        "cap if buckets or sizes[place] > first_cap else first_cap",
        "gets the first bucket alone",
    ),
    ("all buckets small", ROOM, "first_cap", "Only the first bucket"),
    (
        "an empty bucket",
        RETURN,
        "return [[], *buckets]",
        "An empty bucket is an empty message",
    ),
    ("a bucket without parameters", RETURN, "return buckets or [[]]", "there is nothing to send"),
    (
        "too large is left out",
        RETURN,
        "return [each for each in buckets if sum(sizes[place] for place in each) <= cap]",
        "exactly one bucket",
    ),
    (
        "one that is exactly full stays open",
        FULL,
        "if missing < 0 or not buckets:",
        "exactly full",
    ),
    ("flat", RETURN, "return sum(buckets, [])", "a list of lists"),
]
RIGHT = [
    ("numpy's numbers", "->", "numpys"),
    ("a generator of tuples", "->", "lambda buckets: (tuple(each) for each in buckets)"),
    ("a dict's values", "->", "lambda buckets: dict(enumerate(buckets)).values()"),
    ("tensors", "->", "lambda buckets: [torch.tensor(each) for each in buckets]"),
]
