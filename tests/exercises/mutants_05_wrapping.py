"""Plausible wrong answers to exercise 05.3 of notebook 05, and what each must be told.

For each a tuple of (what is wrong, the answer's source, a part of the message); in `RIGHT` of
(what is other than in the solution, the answer's source).
"""

_PREPARE = """
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from course_utils.worker import device

def prepare(model):
    {body}
"""
_BLOCKS = ("for block in model.blocks:", "    fully_shard(block)")
_MEMORY = ("model.to_empty(device=device())", "model.reset_parameters()")
_SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"


def _prepare(*lines: str) -> str:
    return _PREPARE.format(body="\n    ".join(lines))


RIGHT = {
    "05.3": [
        (
            "the blocks in reverse, and the optimizer before there are values",
            _prepare(
                "for block in reversed(model.blocks): fully_shard(block)",
                "fully_shard(model, reshard_after_forward=True)",
                "model.to_empty(device=device())",
                f"optimizer = {_SGD}",
                "model.reset_parameters()",
                "return optimizer",
            ),
        ),
        (
            "all layers of a block",
            _prepare(
                "for block in model.blocks:",
                "    for layer in (block[0], block[2]): fully_shard(layer)",
                "    fully_shard(block)",
                "fully_shard(model)",
                *_MEMORY,
                f"return {_SGD}",
            ),
        ),
    ],
}
MUTANTS = {
    "05.3": [
        (
            "only the root",
            _prepare("fully_shard(model)", *_MEMORY, f"return {_SGD}"),
            "5 of 5 blocks are whole",
        ),
        (
            "only the blocks",
            _prepare(*_BLOCKS, *_MEMORY, f"return {_SGD}"),
            "first.weight is not sharded",
        ),
        (
            "memory first",
            _prepare(*_MEMORY, *_BLOCKS, "fully_shard(model)", f"return {_SGD}"),
            "Shard before there is memory, or after?",
        ),
        (
            "the optimizer first",
            _prepare(
                f"optimizer = {_SGD}", *_BLOCKS, "fully_shard(model)", *_MEMORY, "return optimizer"
            ),
            "When do you make the optimizer?",
        ),
        (
            "no memory",
            _prepare(*_BLOCKS, "fully_shard(model)", "model.reset_parameters()", f"return {_SGD}"),
            "still on the meta device",
        ),
        (
            "no values",
            _prepare(*_BLOCKS, "fully_shard(model)", _MEMORY[0], f"return {_SGD}"),
            "Which method gives values?",
        ),
        (
            "kept after forward",
            _prepare(
                _BLOCKS[0],
                "    fully_shard(block, reshard_after_forward=False)",
                "fully_shard(model)",
                *_MEMORY,
                f"return {_SGD}",
            ),
            "blocks are whole",
        ),
        (
            "the root first",
            _prepare("fully_shard(model)", *_BLOCKS, *_MEMORY, f"return {_SGD}"),
            "Which wrapping comes last?",
        ),
        (
            "another rate",
            _prepare(
                *_BLOCKS,
                "fully_shard(model)",
                *_MEMORY,
                "return torch.optim.SGD(model.parameters(), lr=0.2)",
            ),
            "not the one of one process",
        ),
        (
            "nothing is returned",
            _prepare(*_BLOCKS, "fully_shard(model)", *_MEMORY),
            "returned NoneType, expected SGD",
        ),
    ],
}
