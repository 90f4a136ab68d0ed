"""Plausible wrong answers to exercises 10.4 and 10.3, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_OUTER = """
import torch
import torch.distributed as dist

def outer_gradient(before, after, group=None):
    world = dist.get_world_size(group)
    {body}
"""


def _outer(*lines: str) -> str:
    return _OUTER.format(body="\n    ".join(lines))


_PLAN = """
def buckets(sizes, cap):
    found, room = [], 0
    for number, size in enumerate(sizes):
        if {close}:
            found.append([])
            room = cap
        found[-1].append(number)
        room -= size
    return {back}
"""


def _plan(close: str = "not found or size > room", back: str = "found") -> str:
    return _PLAN.format(close=close, back=back)


_PUBLISHED = """
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
"""

RIGHT = {
    "10.4": [
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
    ],
    "10.3": [
        (
            "the mean of after first",
            _outer(
                "mean = after / world", "dist.all_reduce(mean, group=group)", "return before - mean"
            ),
        ),
    ],
}

MUTANTS = {
    "10.4": [
        ("as published", _PUBLISHED, "Does `offset` count"),
        (
            "leaves out what is too large",
            "def buckets(sizes, cap):\n"
            "    found, room = [], 0\n"
            "    for number, size in enumerate(sizes):\n"
            "        if size > cap: continue\n"
            "        if not found or size > room:\n"
            "            found.append([]); room = cap\n"
            "        found[-1].append(number); room -= size\n"
            "    return found\n",
            "How should it be sent?",
        ),
        ("never quite full", _plan(close="not found or size >= room"), "A bucket may be"),
        ("above the cap", _plan(close="not found or room <= 0"), "Look before you add"),
        ("a tensor a bucket", _plan(close="True"), "A bucket may be exactly full"),
        ("backwards", _plan(back="[each[::-1] for each in found]"), "not in order"),
        ("an empty one at the end", _plan(back="[*found, []]"), "An empty bucket"),
        ("numbers, not lists", _plan(back="len(found)"), "a list of lists"),
    ],
    "10.3": [
        (
            "the wrong sign",
            _outer(
                "moved = (after - before) / world",
                "dist.all_reduce(moved, group=group)",
                "return moved",
            ),
            "SGD subtracts",
        ),
        (
            "a sum",
            _outer("moved = before - after", "dist.all_reduce(moved, group=group)", "return moved"),
            "What makes it a mean?",
        ),
        ("its own", _outer("return before - after"), "How does it learn about the others?"),
        (
            "the mean of the parameters",
            _outer("mean = after / world", "dist.all_reduce(mean, group=group)", "return mean"),
            "How far have they moved?",
        ),
        (
            "subtracts the sum",
            _outer(
                "total = after.clone()",
                "dist.all_reduce(total, group=group)",
                "return before - total",
            ),
            "Only `after` needs the mean",
        ),
        (
            "reduces what it was given",
            _outer(
                "after /= world", "dist.all_reduce(after, group=group)", "return before - after"
            ),
            "changed `after`",
        ),
        (
            "two all-reduces",
            _outer(
                "one, other = before / world, after / world",
                "dist.all_reduce(one, group=group)",
                "dist.all_reduce(other, group=group)",
                "return one - other",
            ),
            "One message of P values",
        ),
        (
            "the whole world",
            _outer("moved = (before - after) / world", "dist.all_reduce(moved)", "return moved"),
            "a group of two",
        ),
        (
            "float16 on the way",
            _outer(
                "moved = ((before - after) / world).half()",
                "dist.all_reduce(moved, group=group)",
                "return moved.to(before.dtype)",
            ),
            "expected",
        ),
    ],
}
