"""Plausible wrong answers to exercises 10.1 and 10.2, and the hint that each must get.

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
        ("one tensor", _top_k(back="total / world"), "expected 2 tensors"),
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
    ],
}
