"""Times gloo's all-reduce and reduce-scatter, and those of notebook 04, in turn.

Arguments: sizes in bytes, with commas between; the number of rounds.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import ring_allreduce as ring
import torch
import torch.distributed as dist

from nbtorchrun.worker import init, report


def gloo_reduce_scatter(values: torch.Tensor) -> None:
    """PyTorch's own, into a tensor of its own."""
    share = values.new_empty(len(values) // dist.get_world_size())
    dist.reduce_scatter_tensor(share, values)


WAYS: dict[str, dict[str, Callable[[torch.Tensor], object]]] = {
    "all-reduce": {
        "gloo": dist.all_reduce,
        "segmented ring": ring.segmented_ring_all_reduce,  # in 8 segments
        "  in 5 segments": partial(ring.segmented_ring_all_reduce, segments=5),
        "ring": ring.ring_all_reduce,
        "halving-doubling": ring.halving_doubling_all_reduce,
    },
    "reduce-scatter": {"gloo": gloo_reduce_scatter, "ring": ring.ring_reduce_scatter},
}


def seconds(work: Callable[[torch.Tensor], object], values: torch.Tensor) -> float:
    """How long the slowest rank takes."""
    dist.barrier()
    start = time.perf_counter()
    work(values)
    took = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


init()
torch.set_num_threads(1)
sizes, rounds = [int(size) for size in sys.argv[1].split(",")], int(sys.argv[2])
for size in sizes:
    values = torch.zeros(size // 4)
    for number in range(-1, rounds):  # the first one warms up
        for collective, ways in WAYS.items():
            for way, work in ways.items():
                took = seconds(work, values)
                if number >= 0:
                    report(step=number, collective=collective, way=way, size=size, seconds=took)
