"""Wrong answers to 05.3, and right ones of another kind."""

FIRST = "for block in model.blocks:"
BLOCKS = FIRST + "\n        fully_shard(block)"
ROOT = "fully_shard(model)"
MEMORY = "model.to_empty(device=device())"
VALUES = "model.reset_parameters()"
SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"

MUTANTS = {
    "05.3": [
        ("only the root", BLOCKS, "pass", "5 of 5 blocks are whole"),
        ("only the blocks", ROOT, "pass", "first.weight is not sharded"),
        (
            "memory first",
            MEMORY,
            "pass",
            VALUES,
            "pass",
            FIRST,
            f"{MEMORY}\n{VALUES}\n{FIRST}",
            "Shard before there is memory, or after?",
        ),
        (
            "the optimizer first",
            f"return {SGD}",
            "return optimizer",
            FIRST,
            f"optimizer = {SGD}\n{FIRST}",
            "When do you make the optimizer?",
        ),
        ("no memory", MEMORY, "pass", "still on the meta device"),
        ("no values", VALUES, "pass", "Which method gives values?"),
        (
            "kept after forward",
            "fully_shard(block)",
            "fully_shard(block, reshard_after_forward=False)",
            "blocks are whole",
        ),
        (
            "the root first",
            ROOT,
            "pass",
            FIRST,
            f"{ROOT}\n{FIRST}",
            "Which wrapping comes last?",
        ),
        ("another rate", "lr=0.1", "lr=0.2", "not the one of one process"),
        ("momentum, seen in the second step", "lr=0.1", "lr=0.1, momentum=0.9", "after two steps"),
        ("nothing is returned", "return torch", "torch", "returned NoneType, expected SGD"),
    ],
}

RIGHT = {
    "05.3": [
        (
            "the last block stays whole until backward, which needs it first",
            "fully_shard(block)",
            "fully_shard(block, reshard_after_forward=block is not model.blocks[-1])",
        ),
        (
            "the blocks in reverse, and the optimizer before there are values",
            "model.blocks",
            "reversed(model.blocks)",
            ROOT,
            "fully_shard(model, reshard_after_forward=True)",
            f"return {SGD}",
            "return optimizer",
            VALUES,
            f"optimizer = {SGD}\n{VALUES}",
        ),
        (
            "all layers of a block",
            "fully_shard(block)",
            "for layer in (block[0], block[2]):\n    fully_shard(layer)\nfully_shard(block)",
        ),
    ],
}
