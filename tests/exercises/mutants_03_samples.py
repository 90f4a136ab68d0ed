"""Plausible wrong answers to exercise 03.3, and the hint that each must get.

A list of (what is wrong, the answer's source, a part of the message).
"""

_SHARE = """
import torch

def my_share(size, ranks, rank, epoch, seed):
    generator = torch.Generator().manual_seed({seed})
    order = {order}
    total = -(-size // ranks) * ranks
    {body}
"""


def _share(
    *lines: str,
    seed: str = "seed + epoch",
    order: str = "torch.randperm(size, generator=generator).tolist()",
) -> str:
    return _SHARE.format(seed=seed, order=order, body="\n    ".join(lines))


PADDED = "order = (order * ranks)[:total]"

MUTANTS = {
    "03.3": [
        (
            "the global generator",
            _share(
                "torch.manual_seed(seed + epoch)",
                "order = torch.randperm(size).tolist()",
                PADDED,
                "return order[rank::ranks]",
            ),
            "changed the global random state",
        ),
        (
            "floats",
            _share(PADDED, "return [float(index) for index in order[rank::ranks]]"),
            "a list that holds a float",
        ),
        ("not padded", _share("return order[rank::ranks]"), "the same number of steps"),
        (
            "into pieces",
            _share(PADDED, "each = total // ranks", "return order[rank * each :][:each]"),
            "like cards",
        ),
        ("no epoch", _share(PADDED, "return order[rank::ranks]", seed="seed"), "epoch 0's order"),
        (
            "an order for each rank",
            _share(PADDED, "return order[rank::ranks]", seed="seed + epoch + rank"),
            "its own order",
        ),
        (
            "not shuffled",
            _share(PADDED, "return order[rank::ranks]", order="list(range(size))"),
            "not shuffled",
        ),
        (
            "padded with the last",
            _share("order += [order[-1]] * (total - size)", "return order[rank::ranks]"),
            "Only the padding is wrong",
        ),
        (
            "padded once at most",
            _share("order += order[: total - size]", "return order[rank::ranks]"),
            "the same number of steps",
        ),
        (
            "a tensor",
            _share("order = torch.tensor((order * ranks)[:total])", "return order[rank::ranks]"),
            "a list of numbers",
        ),
    ],
}
