"""Plausible wrong answers to the exercises of notebook 11, and right ones of another kind."""

_MERGE = """
import torch

def merge(out, lse, other_out, other_lse):
    {total}
    {out}
    return joined, {lse}
"""
_MERGE_PARTS = {
    "total": "total = torch.logaddexp(lse, other_lse)",
    "out": "joined = out * (lse - total).exp().unsqueeze(-1) "
    "+ other_out * (other_lse - total).exp().unsqueeze(-1)",
    "lse": "total",
}


def _merge(**changed: str) -> str:
    return _MERGE.format(**(_MERGE_PARTS | changed))


_ZIGZAG = """
def zigzag(length, rank, ranks):
    size, longer = divmod(length, 2 * ranks)
    starts = [piece * size + min(piece, longer) for piece in range(2 * ranks + 1)]
    mine = {mine}
    return [(starts[piece], starts[piece + 1]) for piece in mine]
"""
_OPPOSITE = "(rank, 2 * ranks - 1 - rank)"

_DISPATCH = """
from between_ranks import exchange, gather_numbers, ranks_of

def plan(destination, group=None):
    rank, ranks = ranks_of(group)
    send = destination.bincount(minlength=ranks).tolist()
    receive = {receive}
    return destination.argsort({stable}), send, receive, group

def dispatch(rows, plan):
    order, send, receive, group = plan
    return {there}

def combine(results, plan):
    order, send, receive, group = plan
    back = exchange(results, receive, send, group)
    return {back}
"""
_PARTS = {
    "receive": "[each[rank] for each in gather_numbers(send, group)]",
    "stable": "stable=True",
    "there": "exchange(rows[order], send, receive, group)",
    "back": "back[order.argsort()]",
}


def _dispatch(**changed: str) -> str:
    return _DISPATCH.format(**(_PARTS | changed))


MUTANTS = {
    "11.1": [
        ("added", _merge(out="joined = out + other_out"), "Adding counts every piece in full"),
        ("the mean", _merge(out="joined = (out + other_out) / 2"), "equal weight"),
        (
            "weights swapped",
            _merge(
                out="joined = out * (other_lse - total).exp().unsqueeze(-1) "
                "+ other_out * (lse - total).exp().unsqueeze(-1)"
            ),
            "the wrong way round",
        ),
        (
            "weights not divided",
            _merge(
                out="joined = out * lse.exp().unsqueeze(-1) "
                "+ other_out * other_lse.exp().unsqueeze(-1)"
            ),
            "do not add up to 1",
        ),
        (
            "exp of large numbers",
            _merge(
                total="a, b = lse.exp().unsqueeze(-1), other_lse.exp().unsqueeze(-1)",
                out="joined = (a * out + b * other_out) / (a + b)",
                lse="(a + b).squeeze(-1).log()",
            ),
            "operation gives nan",
        ),
        ("logarithms added", _merge(lse="lse + other_lse"), "you can't add two logarithms"),
        ("the larger lse", _merge(lse="torch.maximum(lse, other_lse)"), "the larger of the two"),
        ("one lse", _merge(lse="lse"), "of one piece alone"),
        ("one tensor", _merge().replace("return joined, total", "return joined"), "two tensors"),
        (
            "its arguments written",
            _merge(
                out="out *= (lse - total).exp().unsqueeze(-1); joined = out "
                "+ other_out * (other_lse - total).exp().unsqueeze(-1)"
            ),
            "changed `out`",
        ),
        ("float32", _merge().replace("return joined,", "return joined.float(),"), "out"),
    ],
    "11.2": [
        ("neighbours", _ZIGZAG.format(mine="(2 * rank, 2 * rank + 1)"), "These two are neighbours"),
        (
            "both halves alike",
            _ZIGZAG.format(mine="(rank, ranks + rank)"),
            "the later piece of both",
        ),
        ("the late one first", _ZIGZAG.format(mine="(2 * ranks - 1 - rank, rank)"), "comes first"),
        ("one too far", _ZIGZAG.format(mine="(rank, 2 * ranks - 2 - rank)"), "held twice"),
        ("one piece", _ZIGZAG.format(mine="(rank,)"), "Every rank holds 2 of the"),
        (
            "sizes rounded down",
            "def zigzag(length, rank, ranks):\n    size = length // (2 * ranks)\n"
            "    return [(p * size, p * size + size) for p in (rank, 2 * ranks - 1 - rank)]\n",
            "Nobody holds position",
        ),
        (
            "positions, not pieces",
            "def zigzag(length, rank, ranks):\n    return list(range(rank, length, ranks))\n",
            "Return two pairs",
        ),
        ("nothing", "def zigzag(length, rank, ranks):\n    pass\n", "Return two pairs"),
    ],
    "11.3": [
        (
            "not sorted",
            _dispatch(there="exchange(rows, send, receive, group)"),
            "Did you sort them",
        ),
        ("not brought back", _dispatch(back="back"), "What undoes a sort?"),
        ("sorted twice", _dispatch(back="back[order]"), "What undoes a sort?"),
        (
            "descending",
            _dispatch(stable="descending=True, stable=True"),
            "dispatch",
        ),
        ("receives what it sends", _dispatch(receive="send"), "rank"),
        (
            "the group forgotten",
            _dispatch(receive="[each[rank] for each in gather_numbers(send)]"),
            "Number of tensor splits not",
        ),
        (
            "no gradient",
            _dispatch(there="exchange(rows[order].detach(), send, receive, group)"),
            "gradient of the rows is wrong",
        ),
        (
            "everything to everyone",
            _dispatch(there="gathered(rows, plan)")
            + """
import torch
import torch.distributed as dist

def gathered(rows, plan):
    order, send, receive, group = plan
    rank, ranks = ranks_of(group)
    came = exchange(rows[order], send, receive, group)
    exchange(rows[order].detach().repeat(ranks, 1), [len(rows)] * ranks,
             [sum(each) for each in gather_numbers(send, group)], group)
    return came
""",
            "moved",
        ),
    ],
}

RIGHT = {
    "11.1": [
        (
            "with the larger lse taken off",
            _merge(
                total="top = torch.maximum(lse, other_lse).unsqueeze(-1)\n"
                "    a, b = (lse.unsqueeze(-1) - top).exp(), (other_lse.unsqueeze(-1) - top).exp()",
                out="joined = (a * out + b * other_out) / (a + b)",
                lse="(top + (a + b).log()).squeeze(-1)",
            ),
        ),
    ],
    "11.2": [
        (
            "with tensor_split, and ranges as lists",
            "import torch\ndef zigzag(length, rank, ranks):\n"
            "    cut = torch.arange(length).tensor_split(2 * ranks)\n"
            "    return [[int(cut[p][0]), int(cut[p][-1]) + 1]"
            " for p in (rank, 2 * ranks - 1 - rank)]\n",
        ),
    ],
    "11.3": [
        (
            "scattered back",
            _dispatch(back="torch.zeros_like(back).index_copy(0, order, back)")
            + "\nimport torch\n",
        ),
        (
            "counts by an all-to-all",
            _dispatch(receive="counts(send, group)")
            + """
import torch
import torch.distributed as dist

def counts(send, group):
    if ranks_of(group)[1] == 1:
        return send
    came = torch.empty(len(send), dtype=torch.int64)
    dist.all_to_all_single(came, torch.tensor(send), group=group)
    return came.tolist()
""",
        ),
    ],
}
