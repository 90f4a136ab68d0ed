"""Plausible wrong answers to exercise 08.1, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
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


def _accuracy(*lines: str) -> str:
    return _ACCURACY.format(body="\n    ".join(lines))


MUTANTS = {
    "08.1": [
        (
            "contiguous blocks",
            _accuracy(
                "number = rank * len(right) + torch.arange(len(right))",
                "total = right[number < size].sum()",
                "dist.all_reduce(total)",
                "return total.item() / size",
            ),
            "returned",
        ),
        (
            "every bit to everyone",
            _accuracy(
                "every = [torch.empty_like(right) for _ in range(world)]",
                "dist.all_gather(every, right)",
                "return torch.stack(every, 1).flatten()[:size].double().mean().item()",
            ),
            "called all_gather of",
        ),
        (
            "every bit to everyone, in a thread",
            _accuracy(
                "import threading",
                "every = [torch.empty(40 * len(right)) for _ in range(world)]",
                "arguments = every, right.float().repeat(40)",
                "thread = threading.Thread(target=dist.all_gather, args=arguments)",
                "thread.start()",
                "thread.join()",
                "every = [each[: len(right)] for each in every]",
                "return torch.stack(every, 1).flatten()[:size].double().mean().item()",
            ),
            "outside its collectives",
        ),
        (
            "a sum of bytes",
            _accuracy(
                "total = real.sum().to(torch.uint8)",
                "dist.all_reduce(total)",
                "return total.item() / size",
            ),
            "5,000 samples",
        ),
        (
            "rounded",
            _accuracy(
                "total = real.sum()",
                "dist.all_reduce(total)",
                "return round(total.item() / size, 2)",
            ),
            "do you round",
        ),
        (
            "own",
            _accuracy("return real.float().mean().item() if len(real) else 0.0"),
            "learn about the others",
        ),
        (
            "padding counted",
            _accuracy(
                "total = right.sum()",
                "dist.all_reduce(total)",
                "return total.item() / (world * len(right))",
            ),
            "counts padded samples twice",
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
            "do you count padding",
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
            "without summing first",
        ),
        (
            "on rank 0 only",
            _accuracy(
                "total = real.sum()",
                "dist.reduce(total, 0)",
                "return total.item() / size if rank == 0 else None",
            ),
            "rank 1 returned None",
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
            "even a rank without samples",
        ),
    ],
}
