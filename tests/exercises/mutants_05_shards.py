"""Plausible wrong answers to exercises 05.1 and 05.2 of notebook 05, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_GATHER = """
import torch
import torch.distributed as dist

class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard):
        world = dist.get_world_size()
        whole = shard.new_empty(world * len(shard))
        {forward}

    @staticmethod
    def backward(ctx, gradient):
        rank, world = dist.get_rank(), dist.get_world_size()
        size = len(gradient) // world
        part = gradient.new_empty(size)
        {backward}
"""
_FORWARD = ("dist.all_gather_into_tensor(whole, shard)", "return whole")
_BACKWARD = (
    "dist.reduce_scatter_tensor(part, gradient.contiguous() / world)",
    "return part",
)

_BYTES = """
def my_bytes(stage, parameters, ranks, width, states):
    shard = -(-parameters // ranks)
    master = 4 if width < 4 else 0
    model, gradient, state = [shard if stage >= n else parameters for n in (3, 2, 1)]
    {body}
"""


def _forward(*lines: str) -> str:
    return _gather(lines, _BACKWARD)


def _backward(*lines: str) -> str:
    return _gather(_FORWARD, lines)


def _gather(forward: tuple[str, ...], backward: tuple[str, ...]) -> str:
    indent = "\n        "
    return _GATHER.format(forward=indent.join(forward), backward=indent.join(backward))


def _bytes(*lines: str) -> str:
    return _BYTES.format(body="\n    ".join(lines))


RIGHT = {
    "05.2": [
        (
            "lists, the average by the collective, alone without a message",
            _gather(
                (
                    "if world == 1: return shard.clone()",
                    "dist.all_gather(list(whole.chunk(world)), shard)",
                    "return whole",
                ),
                (
                    "parts = list(gradient.clone().contiguous().chunk(world))",
                    "dist.reduce_scatter(part, parts, op=dist.ReduceOp.AVG)",
                    "return part",
                ),
            ),
        )
    ]
}

MUTANTS = {
    "05.2": [
        (
            "the sum",
            _backward("dist.reduce_scatter_tensor(part, gradient.contiguous())", "return part"),
            "2 times too large, and there are 2 ranks. Sum or average?",
        ),
        ("its own", _backward("return gradient.chunk(world)[rank]"), "Who tells it of the others?"),
        (
            "an all-reduce, then a slice",
            _backward(
                "whole = gradient / world",
                "dist.all_reduce(whole)",
                "return whole.chunk(world)[rank].clone()",
            ),
            "Which collective gives its part?",
        ),
        (
            "the whole gradient",
            _backward("whole = gradient / world", "dist.all_reduce(whole)", "return whole"),
            "How many does backward return?",
        ),
        (
            "divided in place",
            _backward(
                "gradient /= world",
                "dist.reduce_scatter_tensor(part, gradient.contiguous())",
                "return part",
            ),
            "changed the gradient that it was given",
        ),
        (
            "the neighbour's",
            _backward(
                "rolled = gradient.roll(size) / world",
                "dist.reduce_scatter_tensor(part, rolled)",
                "return part",
            ),
            "the gradient of its shard is",
        ),
        (
            "gathered in bfloat16",
            _forward(
                "half = whole.bfloat16()",
                "dist.all_gather_into_tensor(half, shard.bfloat16())",
                "return half.to(shard)",
            ),
            "forward returned",
        ),
        (
            "gathered twice",
            _forward("dist.all_gather_into_tensor(whole, shard)", *_FORWARD),
            "expected all_gather of",
        ),
        (
            "the shard is emptied",
            _forward("dist.all_gather_into_tensor(whole, shard)", "shard.zero_()", "return whole"),
            "changed the shard that it was given",
        ),
        ("its own, repeated", _forward("return shard.repeat(world)"), "in the order of the ranks"),
    ],
    "05.1": [
        (
            "no master copy",
            _bytes("return model * width + gradient * width + state * 4 * states"),
            "On what does the optimizer work",
        ),
        (
            "a copy of 32 bits too",
            _bytes("return model * width + gradient * width + state * (4 + 4 * states)"),
            "Who needs a copy in 32 bits",
        ),
        (
            "states in 16 bits",
            _bytes("return model * width + gradient * width + state * (master + width * states)"),
            "In which precision",
        ),
        (
            "not padded",
            _bytes(
                "shard = parameters // ranks",
                "model, gradient, state = [shard if stage >= n else parameters for n in (3, 2, 1)]",
                "return model * width + gradient * width + state * (master + 4 * states)",
            ),
            "how long, if the ranks do not divide?",
        ),
        (
            "stage 2 for stage 1",
            _bytes(
                "gradient = shard if stage >= 1 else parameters",
                "return model * width + gradient * width + state * (master + 4 * states)",
            ),
            "That is stage 2. What is sharded in stage 1?",
        ),
        (
            "parameters never sharded",
            _bytes("return parameters * width + gradient * width + state * (master + 4 * states)"),
            "That is stage 2. What is sharded in stage 3?",
        ),
        (
            "the master copy is not sharded",
            _bytes(
                "return model * width + gradient * width + state * 4 * states + parameters * master"
            ),
            "Which are sharded in this stage?",
        ),
        (
            "all ranks together",
            _bytes(
                "one = model * width + gradient * width + state * (master + 4 * states)",
                "return one * ranks",
            ),
            "what all ranks hold together",
        ),
        ("nothing", _bytes("pass"), "A whole number of bytes"),
    ],
}
