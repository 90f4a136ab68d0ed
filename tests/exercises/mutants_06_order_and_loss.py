"""Plausible wrong answers to exercises 06.3 and 06.4 of notebook 06, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_ORDER = """
import torch

def side_by_side(q, k, v, kv_heads):
    {body}
"""

_LOSS = """
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from tp_communications import copy_to_group, gather_from_group, reduce_from_group

def cut_cross_entropy(logits, targets, group=None):
    size = logits.size(1)
    largest = logits.detach().amax(dim=1)
    dist.all_reduce(largest, dist.ReduceOp.MAX, group)
    shifted = logits - largest[:, None]
    place = targets - dist.get_rank(group) * size
    mine = (place >= 0) & (place < size)
    chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0]
    chosen_, chosen = chosen, chosen.where(mine, 0)
    total = shifted.exp().sum(dim=1)
    {body}
"""


def _order(*lines: str) -> str:
    return _ORDER.format(body="\n    ".join(lines))


def _loss(*lines: str) -> str:
    return _LOSS.format(body="\n    ".join(lines))


RIGHT = {
    "06.3": [
        (
            "each part's own logsumexp first",
            """
import torch
import torch.distributed as dist
from tp_communications import reduce_from_group

def cut_cross_entropy(logits, targets, group=None):
    own = logits.logsumexp(1)
    top = own.detach().clone()
    dist.all_reduce(top, dist.ReduceOp.MAX, group)
    total = reduce_from_group((own - top).exp(), group)
    size = logits.size(1)
    place = targets - dist.get_rank(group) * size
    mine = (place >= 0) & (place < size)
    row = torch.arange(len(targets), device=logits.device)
    chosen = torch.where(mine, logits[row, place.clamp(0, size - 1)], 0)
    return total.log() + top - reduce_from_group(chosen, group)
""",
        )
    ]
}

MUTANTS = {
    "06.3": [
        (
            "a factor 0 for the target of others",
            _loss(
                "both = reduce_from_group(torch.stack([total, chosen_ * mine]), group)",
                "return both[0].log() - both[1]",
            ),
            "0 times inf",
        ),
        (
            "the largest of all without their sign",
            _loss(
                "largest = logits.detach().abs().amax(dim=1)",
                "dist.all_reduce(largest, dist.ReduceOp.MAX)",
                "shifted = logits - largest[:, None]",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]))",
                "return both[0].log() - both[1]",
            ),
            "whose maximum is taken?",
        ),
        (
            "the last id of a part lost",
            _loss(
                "mine = (place >= 0) & (place < size - 1)",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
                "both = reduce_from_group(torch.stack([total, chosen]))",
                "return both[0].log() - both[1]",
            ),
            "minus the target's logit",
        ),
        (
            "squeezed, and one position is none",
            _loss(
                "both = reduce_from_group(torch.stack([total, chosen]), group)",
                "return (both[0].log() - both[1]).squeeze()",
            ),
            "expected",
        ),
        (
            "the targets are overwritten",
            _loss(
                "targets.zero_()",
                "both = reduce_from_group(torch.stack([total, chosen]), group)",
                "return both[0].log() - both[1]",
            ),
            "changed targets that it was given",
        ),
        (
            "parts of seven ids",
            _loss(
                "place = targets - dist.get_rank(group) * 7",
                "mine = (place >= 0) & (place < size)",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
                "both = reduce_from_group(torch.stack([total, chosen]), group)",
                "return both[0].log() - both[1]",
            ),
            "the target's logit",
        ),
        (
            "the maximum from zeros",
            _loss(
                "largest = logits.detach().amax(dim=1).clamp(min=0)",
                "dist.all_reduce(largest, dist.ReduceOp.MAX, group)",
                "shifted = logits - largest[:, None]",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]), group)",
                "return both[0].log() - both[1]",
            ),
            "negative logits",
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
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
                "both = reduce_from_group(torch.stack([shifted.exp().sum(1), chosen]))",
                "return both[0].log() - both[1]",
            ),
            "What is exp(1000)?",
        ),
        (
            "each rank's own maximum",
            _loss(
                "shifted = logits - logits.detach().amax(1, keepdim=True)",
                "chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0].where(mine, 0)",
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
            "the target's logit without a gradient",
            _loss(
                "return reduce_from_group(total).log() - reduce_from_group(chosen.detach())",
            ),
            "Compare it with the gradient of all logits",
        ),
    ],
    "06.4": [
        ("q, then k, then v", _order("return torch.cat([q, k, v])"), "hold the v of KV head 0?"),
        (
            "as many query heads as KV heads",
            _order(
                "three = [each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]",
                "return torch.stack(three, dim=1).flatten(0, 2)",
            ),
            "RuntimeError",
        ),
        (
            "k and v repeated for each query head",
            _order(
                "size = k.size(0) // kv_heads",
                "times = q.size(0) // k.size(0)",
                "q, k, v = (each.unflatten(0, (-1, size)) for each in (q, k, v))",
                "k, v = (each.repeat_interleave(times, 0) for each in (k, v))",
                "return torch.cat([q, k, v], dim=1).flatten(0, 1)",
            ),
            "Each KV head once",
        ),
        (
            "backwards",
            _order(
                "three = [each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]",
                "return torch.cat(three, dim=1).flatten(0, 1).flip(0)",
            ),
            "then its k, then its v",
        ),
        (
            "the query heads dealt out like cards",
            _order(
                "q = q.unflatten(0, (-1, kv_heads, k.size(0) // kv_heads)).transpose(0, 1)",
                "q = q.flatten(1, 2)",
                "k, v = (each.unflatten(0, (kv_heads, -1)) for each in (k, v))",
                "return torch.cat([q, k, v], dim=1).flatten(0, 1)",
            ),
            "All q rows of KV head 0",
        ),
        (
            "weights only",
            _order(
                "three = [each.view(kv_heads, -1, each.size(1)) for each in (q, k, v)]",
                "return torch.cat(three, dim=1).flatten(0, 1)",
            ),
            "IndexError",
        ),
        (
            "always float32",
            _order(
                "three = [each.unflatten(0, (kv_heads, -1)).float() for each in (q, k, v)]",
                "return torch.cat(three, dim=1).flatten(0, 1)",
            ),
            "another dtype?",
        ),
        (
            "cut into the first tensor",
            _order(
                "three = [each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]",
                "made = torch.cat(three, dim=1).flatten(0, 1)",
                "q.zero_()",
                "return made",
            ),
            "changed q that it was given",
        ),
    ],
}
