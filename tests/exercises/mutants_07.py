"""Plausible wrong answers to the exercises 07.1 and 07.2, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_MASK = """
import torch

def causal_mask(length, window=None):
    position = torch.arange(length)
    back = position[:, None] - position[None, :]
    {body}
"""

_PERPLEXITY = """
import math
import torch
import torch.distributed as dist

def perplexity(losses):
    total = torch.tensor([losses.double().sum(), losses.numel()], dtype=torch.float64)
    total = total.to(losses.device)
    world = dist.get_world_size()
    {body}
"""


def _mask(body: str) -> str:
    return _MASK.format(body=body)


def _perplexity(*lines: str) -> str:
    return _PERPLEXITY.format(body="\n    ".join(lines))


MUTANTS = {
    "07.1": [
        ("upside down, as published", _mask("return back < 0"), "Yours is the other way round"),
        ("transposed", _mask("return back <= 0"), "Is the token it has to predict among them?"),
        ("not even itself", _mask("return back > 0"), "look at nothing"),
        ("one ahead", _mask("return back >= -1"), "row 0 is [1 1 0], expected [1 0 0]"),
        ("no mask", _mask("return torch.ones(length, length, dtype=bool)"), "one after it"),
        (
            "a window of 0 is none",
            _mask("return (back >= 0) & (back < window if window else back >= 0)"),
            "Is 0 taken for None",
        ),
        ("numbers", _mask("return (back >= 0).float()"), "a Tensor of float32, expected a"),
        ("for a batch", _mask("return (back >= 0)[None]"), "wrong shape (1, 3, 3), expected"),
        ("window ignored", _mask("return back >= 0"), "window=1): row 1 is [1 1 0]"),
        (
            "window one too wide",
            _mask("return (back >= 0) & (back <= (window or length))"),
            "itself included",
        ),
        (
            "window one too narrow",
            _mask("return (back >= 0) & ((back < window - 1) if window else True)"),
            "window=1): row 0 is [0 0 0]",
        ),
        (
            "window to both sides",
            _mask("return (back.abs() < window) if window else (back >= 0)"),
            "window=2): row 0 is [1 1 0 0 0]",
        ),
    ],
    "07.2": [
        ("not reduced", _perplexity("return math.exp(total[0] / total[1])"), "Who tells it"),
        (
            "mean of means",
            _perplexity(
                "mean = losses.mean(dtype=torch.float64)",
                "dist.all_reduce(mean)",
                "return math.exp(mean / world)",
            ),
            "Whose tokens weigh too much",
        ),
        (
            "mean of perplexities",
            _perplexity(
                "value = losses.mean(dtype=torch.float64).exp()",
                "dist.all_reduce(value)",
                "return value.item() / world",
            ),
            "Is exp of a mean the mean of exp?",
        ),
        (
            "a mean of an empty share",
            _perplexity(
                "weighted = losses.mean(dtype=torch.float64) * losses.numel()",
                "total[0] = weighted",
                "dist.all_reduce(total)",
                "return math.exp(total[0] / total[1])",
            ),
            "What is the mean of an empty share?",
        ),
        (
            "an empty share stays away",
            _perplexity(
                "if losses.numel() == 0: return math.nan",
                "dist.all_reduce(total)",
                "return math.exp(total[0] / total[1])",
            ),
            "What is the mean of an empty share?",
        ),
        (
            "own count times ranks",
            _perplexity(
                "dist.all_reduce(total)",
                "return math.exp(total[0] / max(1, world * losses.numel()))",
            ),
            "has every rank as many tokens",
        ),
        (
            "loss, not perplexity",
            _perplexity("dist.all_reduce(total)", "return (total[0] / total[1]).item()"),
            "That is the mean loss",
        ),
        (
            "two to the power",
            _perplexity("dist.all_reduce(total)", "return 2 ** (total[0] / total[1]).item()"),
            "Which base did you use?",
        ),
        (
            "added in float32",
            _perplexity(
                "total = torch.stack([losses.sum(), torch.tensor(float(losses.numel()))])",
                "dist.all_reduce(total)",
                "return math.exp(total[0].double() / total[1].double())",
            ),
            "In which dtype do you add?",
        ),
        (
            "on rank 0 only",
            _perplexity(
                "dist.reduce(total, 0)",
                "if dist.get_rank() == 0:",
                "    return math.exp(total[0] / total[1])",
            ),
            "rank 1 returned None",
        ),
        (
            "a tensor",
            _perplexity("dist.all_reduce(total)", "return (total[0] / total[1]).exp()"),
            "returned a Tensor, expected a float",
        ),
        (
            "every loss sent to everyone",
            _perplexity(
                "everyone = [None] * world",
                "dist.all_gather_object(everyone, losses.double().tolist())",
                "flat = [loss for share in everyone for loss in share]",
                "return math.exp(math.fsum(flat) / len(flat))",
            ),
            "allowed are 2 collectives",
        ),
        (
            "gathered by functional collectives",
            _perplexity(
                "from torch.distributed._functional_collectives import all_gather_tensor",
                "pad = torch.zeros(300_000, dtype=torch.float64)",
                "pad[: losses.numel()] = losses",
                "every = all_gather_tensor(pad, 0, dist.group.WORLD)",
                "dist.all_reduce(total)",
                "return math.exp(every.sum() / total[1])",
            ),
            "allowed are 2 collectives",
        ),
        (
            "over the store",
            _perplexity(
                "store = dist.distributed_c10d._get_default_store()",
                "calls = perplexity.calls = getattr(perplexity, 'calls', 0) + 1",
                "for name, value in zip(('sum', 'count'), total.tolist()):",
                "    store.set(f'{name} {calls} {dist.get_rank()}', repr(value))",
                "def every(name):",
                "    found = [store.get(f'{name} {calls} {rank}') for rank in range(world)]",
                "    return math.fsum(map(float, found))",
                "return math.exp(every('sum') / every('count'))",
            ),
            "called no collective",
        ),
        (
            "three collectives",
            _perplexity(
                "dist.all_reduce(total[:1])",
                "dist.all_reduce(total[1:])",
                "dist.barrier()",
                "return math.exp(total[0] / total[1])",
            ),
            "barrier of 0 bytes, allowed are 2 collectives",
        ),
    ],
}
RIGHT = {
    "07.1": [
        (
            "filled, then cut",
            _mask(
                "seen = torch.ones(length, length, dtype=torch.bool).tril()\n"
                "    return seen if window is None else seen.triu(1 - window)"
            ),
        )
    ],
    "07.2": [
        (
            "two all-reduces",
            _perplexity(
                "dist.all_reduce(total[:1])",
                "dist.all_reduce(total[1:])",
                "return math.exp(total[0] / total[1])",
            ),
        ),
    ],
}
