"""Plausible wrong answers to exercises 05.1 and 05.2 of notebook 05, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_SHARD = """
import torch
import torch.distributed as dist

def shard(tensors):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    size = -(-len(flat) // ranks)
    padded = torch.cat([flat, flat.new_zeros(size * ranks - len(flat))])
    {shard}

def unshard(part, shapes):
    ranks = dist.get_world_size()
    whole = part.new_empty(len(part) * ranks)
    dist.all_gather_into_tensor(whole, part)
    sizes = [shape.numel() for shape in shapes]
    {unshard}
"""
_RIGHT_SHARD = ("return padded[rank * size : (rank + 1) * size].clone()",)
_RIGHT_UNSHARD = (
    "parts = whole[: sum(sizes)].split(sizes)",
    "return [part.view(shape) for part, shape in zip(parts, shapes)]",
)

_BYTES = """
def my_bytes(stage, parameters, ranks, width, states):
    shard = -(-parameters // ranks)
    master = 4 if width < 4 else 0
    model, gradient, state = [shard if stage >= n else parameters for n in (3, 2, 1)]
    {body}
"""


def _shard(*lines: str) -> str:
    return _SHARD.format(shard="\n    ".join(lines), unshard="\n    ".join(_RIGHT_UNSHARD))


def _unshard(*lines: str) -> str:
    return _SHARD.format(shard="\n    ".join(_RIGHT_SHARD), unshard="\n    ".join(lines))


def _bytes(*lines: str) -> str:
    return _BYTES.format(body="\n    ".join(lines))


RIGHT = {
    "05.1": [
        (
            "a rank alone sends nothing",
            _unshard(*_RIGHT_UNSHARD).replace(
                "    dist.all_gather_into_tensor(whole, part)",
                "    if ranks == 1:\n        whole = part\n"
                "    else:\n        dist.all_gather_into_tensor(whole, part)",
            ),
        )
    ]
}

MUTANTS = {
    "05.1": [
        (
            "gathered in bfloat16",
            _unshard(
                "whole = whole.bfloat16()",
                "dist.all_gather_into_tensor(whole, part.bfloat16())",
                "whole = whole.to(part)",
                *_RIGHT_UNSHARD,
            ),
            "unshard returned",
        ),
        (
            "gathered twice",
            _unshard("dist.all_gather_into_tensor(whole, part)", *_RIGHT_UNSHARD),
            "expected all_gather of",
        ),
        (
            "the part is emptied",
            _unshard("part.zero_()", *_RIGHT_UNSHARD),
            "changed the part that it was given",
        ),
        ("a view", _shard("return padded[rank * size : (rank + 1) * size]"), "holds memory for"),
        (
            "no padding",
            _shard("return flat[rank * size : (rank + 1) * size].clone()"),
            "equally long, the last one too",
        ),
        (
            "always one more",
            _shard(
                "size = len(flat) // ranks + 1",
                "padded = torch.cat([flat, flat.new_zeros(size * ranks - len(flat))])",
                "return padded[rank * size : (rank + 1) * size].clone()",
            ),
            "Longer than need be",
        ),
        ("dealt out like cards", _shard("return padded[rank::ranks].clone()"), "like cards"),
        (
            "padded at the front",
            _shard(
                "padded = torch.cat([flat.new_zeros(size * ranks - len(flat)), flat])",
                "return padded[rank * size : (rank + 1) * size].clone()",
            ),
            "Where do the zeros go",
        ),
        (
            "the neighbour's",
            _shard("return padded.roll(-size)[rank * size : (rank + 1) * size].clone()"),
            "Which piece is yours?",
        ),
        (
            "zeros in single precision",
            _shard("return padded[rank * size : (rank + 1) * size].float().clone()"),
            "shard returned [1.54099607",
        ),
        (
            "still two dimensions",
            _shard("return padded.view(ranks, size)[rank : rank + 1].clone()"),
            "A part has one dimension",
        ),
        ("padding kept", _unshard("return [whole]"), "Where is the padding?"),
        (
            "flat tensors",
            _unshard("return list(whole[: sum(sizes)].split(sizes))"),
            "Where is the padding?",
        ),
        (
            "one rank's part again and again",
            _unshard(
                "whole = part.repeat(ranks)",
                *_RIGHT_UNSHARD,
            ),
            "Are all parts in it",
        ),
        (
            "an all-reduce of zeros and a part",
            _unshard(
                "whole = part.new_zeros(len(part) * ranks)",
                "rank = dist.get_rank()",
                "whole[rank * len(part) : (rank + 1) * len(part)] = part",
                "dist.all_reduce(whole)",
                *_RIGHT_UNSHARD,
            ),
            "expected all_gather of",
        ),
    ],
    "05.2": [
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
            "a fraction",
            _bytes(
                "shard = parameters / ranks",
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
