"""Plausible wrong answers to exercises 03.3 and 03.4 of notebook 03, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_SHARE = """
import torch

def my_share(size, ranks, rank, epoch, seed):
    generator = torch.Generator().manual_seed({seed})
    order = {order}
    total = -(-size // ranks) * ranks
    {body}
"""

_ACCURACY = """
import torch
import torch.distributed as dist

def accuracy(right, size):
    rank, world = dist.get_rank(), dist.get_world_size()
    number = rank + world * torch.arange(len(right), device=right.device)
    real = right[number < size]
    {body}
"""


def _share(
    *lines: str,
    seed: str = "seed + epoch",
    order: str = "torch.randperm(size, generator=generator).tolist()",
) -> str:
    return _SHARE.format(seed=seed, order=order, body="\n    ".join(lines))


def _accuracy(*lines: str) -> str:
    return _ACCURACY.format(body="\n    ".join(lines))


PADDED = "order = (order * ranks)[:total]"

MUTANTS = {
    "03.3": [
        ("not padded", _share("return order[rank::ranks]"), "equally many steps"),
        (
            "dropped",
            _share("return order[: size // ranks * ranks][rank::ranks]"),
            "equally many steps",
        ),
        (
            "in pieces",
            _share(PADDED, "each = total // ranks", "return order[rank * each :][:each]"),
            "like cards",
        ),
        ("no epoch", _share(PADDED, "return order[rank::ranks]", seed="seed"), "epoch 0's order"),
        (
            "an order for each rank",
            _share(PADDED, "return order[rank::ranks]", seed="seed + epoch + rank"),
            "an order of its own",
        ),
        (
            "not shuffled",
            _share(PADDED, "return order[rank::ranks]", order="list(range(size))"),
            "Not shuffled",
        ),
        (
            "padded with the last",
            _share("order += [order[-1]] * (total - size)", "return order[rank::ranks]"),
            "Only the padding is wrong",
        ),
        (
            "padded once at most",
            _share("order += order[: total - size]", "return order[rank::ranks]"),
            "equally many steps",
        ),
        (
            "a tensor",
            _share("order = torch.tensor((order * ranks)[:total])", "return order[rank::ranks]"),
            "A list of numbers",
        ),
        (
            "an array",
            _share(
                "import numpy",
                "order = numpy.array((order * ranks)[:total])",
                "return order[rank::ranks]",
            ),
            "A list of numbers",
        ),
    ],
    "03.4": [
        ("own", _accuracy("return real.float().mean().item() if len(real) else 0.0"), "Who tells"),
        (
            "padding counted",
            _accuracy(
                "total = right.sum()",
                "dist.all_reduce(total)",
                "return total.item() / (world * len(right))",
            ),
            "Padded samples count twice",
        ),
        (
            "mean of means",
            _accuracy(
                "mean = real.double().sum() / max(1, len(real))",
                "dist.all_reduce(mean)",
                "return mean.item() / world",
            ),
            "Whose samples weigh too much",
        ),
        (
            "padding called right",
            _accuracy(
                "total = right.sum()", "dist.all_reduce(total)", "return total.item() / size"
            ),
            "is padding among",
        ),
        (
            "padding in the count",
            _accuracy(
                "total = real.sum()",
                "dist.all_reduce(total)",
                "return total.item() / (world * len(right))",
            ),
            "wrong count",
        ),
        (
            "last one of each dropped",
            _accuracy(
                "length = size // world",
                "total = right[:length].sum()",
                "dist.all_reduce(total)",
                "return total.item() / max(1, length * world)",
            ),
            "On which ranks is it padding",
        ),
        (
            "divided by the world, as published",
            _accuracy("return right.float().mean().item() / world"),
            "without adding up first",
        ),
        (
            "on rank 0 only",
            _accuracy(
                "total = real.sum()",
                "dist.reduce(total, 0)",
                "return total.item() / size if rank == 0 else None",
            ),
            "rank 1 returned a NoneType",
        ),
        (
            "a tensor",
            _accuracy("total = real.sum()", "dist.all_reduce(total)", "return total / size"),
            "returned a Tensor, expected a float",
        ),
        (
            "only padding stays away",
            _accuracy(
                "if len(real) == 0: return 0.0",
                "total = real.sum()",
                "dist.all_reduce(total)",
                "return total.item() / size",
            ),
            "only padding too",
        ),
        (
            "everything to everyone",
            _accuracy(
                "every = [torch.empty_like(right) for _ in range(world)]",
                "dist.all_gather(every, right)",
                "every = torch.stack(every, 1).flatten()[:size]",
                "dist.barrier()",
                "dist.barrier()",
                "return every.double().mean().item()",
            ),
            "took part in 3 collectives",
        ),
    ],
}
