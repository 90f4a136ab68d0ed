"""What a rank of the benchmark `context` does: causal attention in each way, and alone."""

import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from context_harness import WAYS, heads_first, layout_of, random
from context_parallel import shard_sequence
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from nbtorchrun.worker import device, init, report, worst_of_ranks

HEADS = 8
SIZES = {  # positions, KV heads
    "T = 1,024, 8 KV heads": (1024, 8),
    "T = 4,096, 8 KV heads": (4096, 8),
    "T = 4,096, 1 KV head": (4096, 1),
}
ROUNDS, WARM_UP = 6, 1  # rounds that count, rounds before them


def inputs(length: int, kv_heads: int, layout: str | None) -> list[Tensor]:
    """q, k and v (1, heads, T or T/N, 8); whole where there is no layout."""
    every = [
        random(seed, 1, length, heads, 8, dtype=torch.float32)
        for seed, heads in enumerate((HEADS, kv_heads, kv_heads))
    ]
    held = [shard_sequence(x, layout) if layout else x for x in every]
    return [heads_first(x).contiguous().requires_grad_() for x in held]


def step(attention: Callable, parts: list[Tensor]) -> None:
    """Forward and backward."""
    attention(*parts).sum().backward()


def seconds(work: Callable | None) -> float:
    """How long the slowest rank takes; all begin together, and those without work wait."""
    dist.barrier()
    start = time.perf_counter()
    if work:
        work()
        if device().type == "cuda":
            torch.cuda.synchronize()
    return worst_of_ranks(time.perf_counter() - start if work else 0.0)


def measure(name: str, length: int, kv_heads: int) -> None:
    """Report the seconds of each way in each round."""
    works: dict[str, Callable | None] = {
        way: partial(
            step, partial(attention, causal=True), inputs(length, kv_heads, layout_of(way))
        )
        for way, attention in WAYS.items()
    }
    alone = partial(scaled_dot_product_attention, is_causal=True, enable_gqa=True)
    mine = dist.get_rank() == 0
    works["one process"] = partial(step, alone, inputs(length, kv_heads, None)) if mine else None
    for round_ in range(WARM_UP + ROUNDS):
        order = list(works)[round_ % len(works) :] + list(works)[: round_ % len(works)]
        for way in order:  # nobody is always the one after the slowest
            taken = seconds(works[way])
            if round_ >= WARM_UP and mine:
                report(size=name, way=way, length=length, seconds=taken)


init(at_least=2)
torch.set_num_threads(1)  # a rank is one core
for name, sizes in SIZES.items():
    measure(name, *sizes)
