"""Wrong answers to 06.3 and 06.4, and right ones of another kind."""

MAXIMUM = "dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)"
REDUCE = "reduce_from_group(both, group)"
LOSSES = "total.log() - chosen"
BY_HEAD = "[each.unflatten(0, (kv_heads, -1)) for each in (q, k, v)]"
JOINED = "torch.cat(by_head, dim=1).flatten(0, 1)"

MUTANTS = {
    "06.3": [
        (
            "a factor 0 for the target of others",
            "chosen.where(mine, 0)",
            "chosen * mine",
            "0 times inf",
        ),
        (
            "the largest of all without their sign",
            "logits.detach()",
            "logits.detach().abs()",
            MAXIMUM,
            "dist.all_reduce(largest, dist.ReduceOp.MAX)",
            "whose maximum is taken?",
        ),
        (
            "the last id of a part lost",
            "place < logits.size(1)",
            "place < logits.size(1) - 1",
            "minus the target's logit",
        ),
        ("squeezed, and one position is none", LOSSES, f"({LOSSES}).squeeze()", "expected"),
        (
            "the targets are overwritten",
            "both = torch",
            "targets.zero_()\nboth = torch",
            "changed targets that it was given",
        ),
        ("parts of seven ids", "* logits.size(1)", "* 7", "the target's logit"),
        ("the maximum from zeros", "amax(dim=1)", "amax(dim=1).clamp(min=0)", "negative logits"),
        (
            "gathers the logits",
            """
from torch.nn.functional import cross_entropy
from tp_communications import gather_from_group

def sharded_cross_entropy(logits, targets, group=None):
    return cross_entropy(gather_from_group(logits), targets, reduction='none')
""",
            "handed",
        ),
        ("no maximum", " - largest[:, None]", "", "What is exp(1000)?"),
        ("each rank's own maximum", MAXIMUM, "pass", "expected"),
        (
            "the target of others not left out",
            "place.where(mine, 0)",
            "place.clamp(0, logits.size(1) - 1)",
            "chosen.where(mine, 0)",
            "chosen",
            "minus the target's logit",
        ),
        ("the mean", LOSSES, f"({LOSSES}).mean()", "not their mean"),
        (
            "a plain all-reduce",
            f"total, chosen = {REDUCE}",
            "dist.all_reduce(both, group=group)\ntotal, chosen = both",
            "right values, by chance",
        ),
        (
            "f after g",
            "import reduce_from_group",
            "import copy_to_group, reduce_from_group",
            REDUCE,
            f"copy_to_group({REDUCE}, group)",
            "yours adds them up",
        ),
        (
            "the target's logit without a gradient",
            "chosen])",
            "chosen.detach()])",
            "Compare it with the gradient of all logits",
        ),
    ],
    "06.4": [
        ("q, then k, then v", JOINED, "torch.cat([q, k, v])", "hold the v of KV head 0?"),
        (
            "as many query heads as KV heads",
            JOINED,
            "torch.stack(by_head, dim=1).flatten(0, 2)",
            "RuntimeError",
        ),
        (
            "k and v repeated for each query head",
            f"by_head = {BY_HEAD}",
            "times, size = q.size(0) // k.size(0), k.size(0) // kv_heads\n"
            "q, k, v = (each.unflatten(0, (-1, size)) for each in (q, k, v))\n"
            "by_head = [q, k.repeat_interleave(times, 0), v.repeat_interleave(times, 0)]",
            "Each KV head once",
        ),
        ("backwards", JOINED, JOINED + ".flip(0)", "then its k, then its v"),
        (
            "the query heads dealt out like cards",
            f"by_head = {BY_HEAD}",
            f"by_head = {BY_HEAD}\n"
            "q = q.unflatten(0, (-1, kv_heads, k.size(0) // kv_heads)).transpose(0, 1)\n"
            "by_head[0] = q.flatten(1, 2)",
            "All q rows of KV head 0",
        ),
        (
            "weights only",
            "unflatten(0, (kv_heads, -1))",
            "view(kv_heads, -1, each.size(1))",
            "IndexError",
        ),
        (
            "always float32",
            "unflatten(0, (kv_heads, -1))",
            "unflatten(0, (kv_heads, -1)).float()",
            "another dtype?",
        ),
        (
            "cut into the first tensor",
            f"return {JOINED}",
            f"made = {JOINED}\nq.zero_()\nreturn made",
            "changed q that it was given",
        ),
    ],
}

RIGHT = {
    "06.3": [
        (
            "each part's own logsumexp first",
            """
import torch
import torch.distributed as dist
from tp_communications import reduce_from_group

def sharded_cross_entropy(logits, targets, group=None):
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
