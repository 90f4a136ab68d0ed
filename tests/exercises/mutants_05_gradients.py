"""Plausible wrong answers to exercises 05.4 and 05.5 of notebook 05, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_MEAN = """
import torch
import torch.distributed as dist

def reduce_gradient(gradient, rows):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    size = len(gradient) // ranks
    shard = gradient.new_empty(size)
    total = torch.tensor(rows, device=gradient.device)
    {body}
"""

_NORM = """
import torch
import torch.distributed as dist

def global_norm(shards):
    here = [shard for shard in shards if shard is not None]
    total = torch.zeros((), dtype=torch.float64)
    {body}
"""


def _mean(*lines: str) -> str:
    return _MEAN.format(body="\n    ".join(lines))


def _norm(*lines: str) -> str:
    return _NORM.format(body="\n    ".join(lines))


_WEIGHTED = "weighted = gradient * (rows / total.item())"

RIGHT = {
    "05.5": [
        (
            "a rank alone sends nothing",
            _mean(
                "if ranks == 1: return gradient.clone()",
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.reduce_scatter_tensor(shard, weighted)",
                "return shard",
            ),
        )
    ],
    "05.4": [
        (
            "a rank alone sends nothing",
            _norm(
                "for s in here: total += s.double().square().sum()",
                "if dist.get_world_size() > 1: dist.all_reduce(total)",
                "return total.sqrt().item()",
            ),
        )
    ],
}

MUTANTS = {
    "05.5": [
        (
            "sent as half",
            _mean(
                "dist.all_reduce(total)",
                _WEIGHTED,
                "half = shard.half()",
                "dist.reduce_scatter_tensor(half, weighted.half())",
                "return half.to(gradient)",
            ),
            "returned",
        ),
        (
            "rows counted in float16",
            _mean(
                "total = total.half()",
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.reduce_scatter_tensor(shard, weighted)",
                "return shard",
            ),
            "many rows: rank 0 returned",
        ),
        (
            "a rank without rows stays away",
            _mean(
                "if rows == 0: return shard.zero_()",
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.reduce_scatter_tensor(shard, weighted)",
                "return shard",
            ),
            "2 ranks",
        ),
        (
            "the sum",
            _mean("dist.reduce_scatter_tensor(shard, gradient.clone())", "return shard"),
            "What makes it a mean?",
        ),
        (
            "a mean of means",
            _mean("dist.reduce_scatter_tensor(shard, gradient / ranks)", "return shard"),
            "Whose rows weigh too much",
        ),
        (
            "divided after the sum",
            _mean(
                "dist.all_reduce(total)",
                "dist.reduce_scatter_tensor(shard, gradient * rows)",
                "return shard / total.item()",
            ),
            "before the sum or after?",
        ),
        (
            "not sent",
            _mean("return gradient[rank * size : (rank + 1) * size].clone()"),
            "Who tells it of the others?",
        ),
        (
            "an all-reduce, then a slice",
            _mean(
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.all_reduce(weighted)",
                "return weighted[rank * size : (rank + 1) * size]",
            ),
            "Which collective gives it just that?",
        ),
        (
            "in place",
            _mean(
                "dist.all_reduce(total)",
                "gradient *= rows / total.item()",
                "dist.reduce_scatter_tensor(shard, gradient)",
                "return shard",
            ),
            "changed the gradient that it was given",
        ),
        (
            "in double precision",
            _mean(
                "dist.all_reduce(total)",
                "weighted = gradient.double() * (rows / total.item())",
                "shard = shard.double()",
                "dist.reduce_scatter_tensor(shard, weighted)",
                "return shard",
            ),
            "returned float64, expected float32",
        ),
        (
            "divided twice",
            _mean(
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.reduce_scatter_tensor(shard, weighted / ranks)",
                "return shard",
            ),
            "By which number do you divide?",
        ),
        (
            "the whole",
            _mean(
                "dist.all_reduce(total)",
                _WEIGHTED,
                "dist.all_reduce(weighted)",
                "return weighted",
            ),
            "How long is yours?",
        ),
    ],
    "05.4": [
        (
            "a float16 norm that overflows",
            _norm(
                "for s in here: total += (torch.linalg.vector_norm(s) ** 2).double()",
                "dist.all_reduce(total)",
                "return total.sqrt().item()",
            ),
            "beyond float16",
        ),
        (
            "whole numbers",
            _norm(
                "for s in here: total += s.long().square().sum()",
                "dist.all_reduce(total)",
                "return total.sqrt().item()",
            ),
            "returned",
        ),
        (
            "its own",
            _norm("return float(sum(s.double().square().sum() for s in here)) ** 0.5"),
            "Who tells it of the others?",
        ),
        (
            "norms added up",
            _norm(
                "total += sum(s.double().square().sum() for s in here) ** 0.5",
                "dist.all_reduce(total)",
                "return total.item()",
            ),
            "their squares do",
        ),
        (
            "no root",
            _norm(
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "return total.item()",
            ),
            "the square of the norm",
        ),
        (
            "averaged",
            _norm(
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "return (total / dist.get_world_size()).sqrt().item()",
            ),
            "where the ranks hold different values",
        ),
        (
            "squared in float16",
            _norm(
                "for s in here: total += s.square().sum()",
                "dist.all_reduce(total)",
                "return total.sqrt().item()",
            ),
            "The square of 300 is beyond float16",
        ),
        (
            "a collective for each shard",
            _norm(
                "for s in shards:",
                "    one = total.clone() if s is None else s.double().square().sum()",
                "    dist.all_reduce(one)",
                "    total += one",
                "return total.sqrt().item()",
            ),
            "2 ranks",
        ),
        (
            "an idle rank stays away",
            _norm(
                "if not here: return 0.0",
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "return total.sqrt().item()",
            ),
            "Who tells it of the others?",
        ),
        (
            "a tensor",
            _norm(
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "return total.sqrt()",
            ),
            "returned a Tensor, expected a float",
        ),
        (
            "clipped on the way",
            _norm(
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "for s in here: s /= 2",
                "return total.sqrt().item()",
            ),
            "changed a shard that it was given",
        ),
        (
            "everything sent to everyone",
            _norm(
                "every = [None] * dist.get_world_size()",
                "dist.all_gather_object(every, [s.double().tolist() for s in here])",
                "flat = [x for rank in every for shard in rank for x in shard]",
                "return sum(x * x for x in flat) ** 0.5",
            ),
            "expected one collective of one number",
        ),
    ],
}
