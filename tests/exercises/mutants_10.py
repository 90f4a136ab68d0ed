"""Plausible wrong answers to the exercises of notebook 10, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_TOP_K = """
import torch
import torch.distributed as dist

def top_k(gradient, kept, share, group=None):
    world = dist.get_world_size(group)
    whole = {whole}
    count = {count}
    places = {choice}.topk(count).indices
    {exchange}
    left = {left}
    {keep}
    return {back}
"""
_PACKED = (
    "mine = torch.cat([whole[places].view(torch.int32), places.int()])",
    "every = mine.new_empty(world * len(mine))",
    "dist.all_gather_into_tensor(every, mine, group)",
    "total = torch.zeros_like(whole)",
    "for theirs in every.view(world, -1):",
    "    total[theirs[-count:].long()] += theirs[:-count].clone().view(whole.dtype)",
)
_TWO = (
    "values, theirs = whole[places], places.to({places})",
    "all_values = [torch.empty_like(values) for _ in range(world)]",
    "all_places = [torch.empty_like(theirs) for _ in range(world)]",
    "dist.all_gather(all_places, theirs, group)",
    "dist.all_gather(all_values, values, group)",
    "total = torch.zeros_like(whole)",
    "for where, what in zip(all_places, all_values):",
    "    {add}",
)
_DENSE = (
    "total = torch.zeros_like(whole)",
    "total[places] = whole[places]",
    "dist.all_reduce(total, group=group)",
)


def _top_k(
    exchange: tuple[str, ...] = _PACKED,
    whole: str = "gradient + kept",
    count: str = "max(1, round(share * len(whole)))",
    choice: str = "whole.abs()",
    left: str = "whole.clone()",
    keep: str = "left[places] = 0",
    back: str = "total / world, left",
) -> str:
    lines = "\n    ".join(exchange)
    return _TOP_K.format(
        whole=whole, count=count, choice=choice, exchange=lines, left=left, keep=keep, back=back
    )


def _two(places: str = "torch.int32", add: str = "total[where.long()] += what") -> tuple[str, ...]:
    return tuple(line.replace("{places}", places).replace("{add}", add) for line in _TWO)


_LOW_RANK = """
import torch
import torch.distributed as dist

def low_rank(matrix, kept, q, group=None):
    whole = {whole}
    p = whole @ q
    {reduce_p}
    {orthonormal}
    mine = whole.T @ p
    {reduce_q}
    return {mean}, {left}, {next_q}
"""


def _low_rank(
    whole: str = "matrix + kept",
    reduce_p: str = "dist.all_reduce(p, group=group)",
    orthonormal: str = "p = torch.linalg.qr(p).Q",
    reduce_q: str = "q = mine / dist.get_world_size(group); dist.all_reduce(q, group=group)",
    mean: str = "p @ q.T",
    left: str = "whole - p @ mine.T",
    next_q: str = "q",
) -> str:
    return _LOW_RANK.format(
        whole=whole,
        reduce_p=reduce_p,
        orthonormal=orthonormal,
        reduce_q=reduce_q,
        mean=mean,
        left=left,
        next_q=next_q,
    )


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
    "10.1": [
        ("two all-gathers, of lists", _top_k(_two())),
        (
            "sorted, and what is left by subtraction",
            _top_k(
                choice="whole.square()",
                left="whole - torch.zeros_like(whole).index_copy_(0, places, whole[places])",
                keep="pass",
            ),
        ),
    ],
    "10.2": [
        (
            "the other sign of p",
            _low_rank(orthonormal="p = -torch.linalg.qr(p).Q"),
        ),
        (
            "divides after the sum",
            _low_rank(
                reduce_q="q = mine.clone(); dist.all_reduce(q, group=group); "
                "q = q / dist.get_world_size(group)"
            ),
        ),
    ],
    "10.3": [
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
    "10.4": [
        (
            "the mean of after first",
            _outer(
                "mean = after / world", "dist.all_reduce(mean, group=group)", "return before - mean"
            ),
        ),
    ],
}

MUTANTS = {
    "10.1": [
        ("a sum", _top_k(back="total, left"), "What makes it a mean?"),
        ("not by magnitude", _top_k(choice="whole"), "the largest by magnitude"),
        ("forgot what was kept", _top_k(whole="gradient"), "You left out what was kept"),
        ("keeps what was sent, too", _top_k(keep="pass"), "Subtract what was sent"),
        (
            "keeps nothing",
            _top_k(left="torch.zeros_like(whole)", keep="pass"),
            "Where do the small values go?",
        ),
        (
            "keeps what differs from the mean",
            _top_k(left="whole - total / world", keep="pass"),
            "whatever the others sent",
        ),
        ("an all-reduce of everything", _top_k(_DENSE), "all n values saves nothing"),
        ("places as int64", _top_k(_two(places="torch.int64")), "takes twice as many bytes"),
        (
            "the last of two ranks wins",
            _top_k(_two(add="total[where.long()] = what")),
            "expected",
        ),
        ("rounds down", _top_k(count="max(1, int(share * len(whole)))"), "the mean:"),
        (
            "works in the gradient it was given",
            _top_k(whole="gradient.add_(kept)"),
            "changed `gradient`",
        ),
        ("the whole world", _top_k().replace("group)", "None)"), "a group of two"),
        (
            "float16 on the way",
            _top_k(back="(total / world).half().to(total.dtype), left"),
            "expected",
        ),
        ("one tensor", _top_k(back="total / world"), "expected two tensors"),
    ],
    "10.2": [
        ("not orthonormal", _low_rank(orthonormal="pass"), "Are the columns of p orthonormal?"),
        ("its own p", _low_rank(reduce_p="pass"), "own p"),
        (
            "a sum of q",
            _low_rank(reduce_q="q = mine.clone(); dist.all_reduce(q, group=group)"),
            "Which of p and q becomes a mean?",
        ),
        ("its own q", _low_rank(mean="p @ mine.T"), "this rank's own q"),
        ("keeps by the mean q", _low_rank(left="whole - p @ q.T"), "own q left out"),
        ("forgot what was kept", _low_rank(whole="matrix"), "You left out what was kept"),
        ("keeps nothing", _low_rank(left="torch.zeros_like(whole)"), "Where does the rest go?"),
        ("returns its own q", _low_rank(next_q="mine"), "the same on every rank"),
        (
            "all-reduces the matrix",
            _low_rank(
                whole="matrix + kept; dist.all_reduce(matrix.clone(), group=group)",
            ),
            "Send only p, (m, k), and q, (n, k)",
        ),
        ("changes the matrix", _low_rank(whole="matrix.add_(kept)"), "changed `matrix`"),
        (
            "the whole world",
            _low_rank(reduce_p="dist.all_reduce(p)"),
            "a group of two",
        ),
        (
            "torch's own",
            "from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook\n"
            + _low_rank(),
            "does what you are asked to write",
        ),
    ],
    "10.3": [
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
    "10.4": [
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
