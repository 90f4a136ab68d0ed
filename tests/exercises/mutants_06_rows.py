"""Plausible wrong answers to exercises 06.3 and 06.4 of notebook 06, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_ROW = """
import torch
import torch.distributed as dist
from torch.nn.functional import linear
from tp_communications import copy_to_group, gather_from_group, reduce_from_group, split_to_group

def row(x, weight, bias, cut):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    part = x if cut else split_to_group(x)
    {body}
"""

_LOSS = """
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from tp_communications import copy_to_group, gather_from_group, reduce_from_group

def cut_cross_entropy(logits, targets):
    size = logits.size(1)
    largest = logits.detach().amax(dim=1)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    shifted = logits - largest[:, None]
    place = targets - dist.get_rank() * size
    mine = (place >= 0) & (place < size)
    chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0] * mine
    total = shifted.exp().sum(dim=1)
    {body}
"""


def _row(*lines: str) -> str:
    return _ROW.format(body="\n    ".join(lines))


def _loss(*lines: str) -> str:
    return _LOSS.format(body="\n    ".join(lines))


MUTANTS = {
    "06.3": [
        (
            "the bias before the sum",
            _row("return reduce_from_group(linear(part, weight, bias))"),
            "how often is the bias in it?",
        ),
        (
            "a share of the bias on every rank",
            _row("return reduce_from_group(linear(part, weight, bias / ranks))"),
            "P times too slowly",
        ),
        (
            "the bias on rank 0 only",
            _row("return reduce_from_group(linear(part, weight, bias * (rank == 0)))"),
            "should learn on every rank",
        ),
        ("no sum", _row("return linear(part, weight) + bias"), "Is a term missing"),
        (
            "a plain chunk, as published",
            _row(
                "part = x if cut else x.chunk(ranks, -1)[rank]",
                "return reduce_from_group(linear(part, weight)) + bias",
            ),
            "0 where another rank's part is used",
        ),
        (
            "the sum in place, as published",
            _row("y = linear(part, weight)", "dist.all_reduce(y)", "return y + bias"),
            "right values, by chance",
        ),
        (
            "f before a part of x",
            _row("return reduce_from_group(linear(copy_to_group(part), weight)) + bias"),
            "Is x whole here, or cut?",
        ),
        (
            "the mean",
            _row("return reduce_from_group(linear(part, weight) + bias) / ranks"),
            "Is a term missing",
        ),
        (
            "no bias",
            _row("return reduce_from_group(linear(part, weight))"),
            "how often is the bias in it?",
        ),
        (
            "f after the sum",
            _row("return copy_to_group(reduce_from_group(linear(part, weight))) + bias"),
            "yours adds them up",
        ),
        (
            "f, then a chunk",
            _row(
                "part = x if cut else copy_to_group(x).chunk(ranks, -1)[rank]",
                "return reduce_from_group(linear(part, weight)) + bias",
            ),
            "Which collective does just this?",
        ),
    ],
    "06.4": [
        (
            "the largest of all without their sign",
            _loss(
                "largest = logits.detach().abs().amax(dim=1)",
                "dist.all_reduce(largest, dist.ReduceOp.MAX)",
                "shifted = logits - largest[:, None]",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0] * mine",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]))",
                "return both[0].log() - both[1]",
            ),
            "negative logits",
        ),
        (
            "the last id of a part lost",
            _loss(
                "mine = (place >= 0) & (place < size - 1)",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0] * mine",
                "both = reduce_from_group(torch.stack([total, chosen]))",
                "return both[0].log() - both[1]",
            ),
            "Which rank has the target",
        ),
        (
            "gathers the logits",
            _loss("return cross_entropy(gather_from_group(logits), targets, reduction='none')"),
            "handed",
        ),
        (
            "no maximum",
            _loss(
                "shifted, largest = logits, 0",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0] * mine",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]))",
                "return both[0].log() - both[1]",
            ),
            "What is exp(1000)?",
        ),
        (
            "each rank's own maximum",
            _loss(
                "shifted = logits - logits.detach().amax(1, keepdim=True)",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0] * mine",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]))",
                "return both[0].log() - both[1]",
            ),
            "expected",
        ),
        (
            "the target of others not left out",
            _loss(
                "chosen = shifted.gather(1, place.clamp(0, size - 1)[:, None])[:, 0]",
                "both = reduce_from_group(torch.stack([total, chosen]))",
                "return both[0].log() - both[1]",
            ),
            "minus the target's logit",
        ),
        (
            "the logarithm before the sum",
            _loss(
                "both = reduce_from_group(torch.stack([total.log(), chosen]))",
                "return both[0] - both[1]",
            ),
            "ln of the sum over the whole vocabulary",
        ),
        (
            "the mean",
            _loss(
                "both = reduce_from_group(torch.stack([total, chosen]))",
                "return (both[0].log() - both[1]).mean()",
            ),
            "not their mean",
        ),
        (
            "a plain all-reduce",
            _loss(
                "both = torch.stack([total, chosen])",
                "dist.all_reduce(both)",
                "return both[0].log() - both[1]",
            ),
            "right values, by chance",
        ),
        (
            "f after g",
            _loss(
                "both = copy_to_group(reduce_from_group(torch.stack([total, chosen])))",
                "return both[0].log() - both[1]",
            ),
            "yours adds them up",
        ),
        (
            "the sum is not summed",
            _loss("return total.log() - reduce_from_group(chosen)"),
            "expected",
        ),
        (
            "the target's logit without a gradient",
            _loss(
                "return reduce_from_group(total).log() - reduce_from_group(chosen.detach())",
            ),
            "Compare it with the whole layer's",
        ),
    ],
}
