"""What a rank of the benchmark `ddp` does: steps of the same model, averaged in several ways.

All ways in turn, round after round; a round of a way is some steps, timed on the slowest rank.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from ddp_buckets import BucketedDDP
from ddp_flat import FlatDDP
from ddp_hooks import HookedDDP
from ddp_naive import NaiveDDP
from ddp_scratch import DDP
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet18
from transformer import Transformer

from nbtorchrun.worker import device, init, report

ROUNDS, WARM_UP = 20, 4
ONE = "one process"
CAP_MB = 4  # of every bucket, for all that have buckets


def mlp() -> tuple[nn.Module, Tensor, Tensor]:
    """4.2 million parameters, 64 samples."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(64, 1024), torch.randint(1024, (64,))


def resnet() -> tuple[nn.Module, Tensor, Tensor]:
    """11.2 million parameters, 16 images of 32 x 32."""
    return resnet18(num_classes=10), torch.randn(16, 3, 32, 32), torch.randint(10, (16,))


def transformer() -> tuple[nn.Module, Tensor, Tensor]:
    """3.7 million parameters, 4 sequences of 64 tokens."""
    tokens = torch.randint(1000, (4, 65))
    return Transformer(1000, 256, 8, 1024, 4, 64), tokens[:, :-1], tokens[:, 1:]


def ways(model: Callable[[], nn.Module]) -> dict[str, nn.Module]:
    """The same model alone and wrapped by each of the versions; the last two are compared."""
    gpu = [device().index] if device().type == "cuda" else None
    return {
        ONE: model(),
        "one by one": NaiveDDP(model()),
        "flat": FlatDDP(model()),
        "hooks": HookedDDP(model()),
        "buckets": BucketedDDP(model(), CAP_MB, CAP_MB),
        "ddp_scratch": DDP(model(), CAP_MB, CAP_MB),
        "torch": DistributedDataParallel(model(), device_ids=gpu, bucket_cap_mb=CAP_MB),
    }


def step(replica: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    """Forward, backward, averaged gradients; no optimizer, which is the same for all."""
    replica.zero_grad()
    logits = replica(inputs)
    cross_entropy(logits.flatten(0, -2), targets.flatten()).backward()
    if hasattr(replica, "finish_gradient_synchronization"):
        replica.finish_gradient_synchronization()


def seconds(replica: nn.Module, inputs: Tensor, targets: Tensor, steps: int, busy: bool) -> float:
    """The time of a step, on the slowest rank; one that is not `busy` only waits."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(steps if busy else 0):
        step(replica, inputs, targets)
    if device().type == "cuda":
        torch.cuda.synchronize()
    taken = torch.tensor((time.perf_counter() - start) / steps, device=device())
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.item()


init()
torch.set_num_threads(1)  # a rank is one core
for make, steps in ((mlp, 3), (resnet, 1), (transformer, 1)):
    _, inputs, targets = make()
    inputs, targets = inputs.to(device()), targets.to(device())
    replicas = ways(lambda make=make: make()[0].to(device()))
    for round_ in range(WARM_UP + ROUNDS):
        for name in list(replicas)[:: -1 if round_ % 2 else 1]:  # none is always first
            busy = name != ONE or dist.get_rank() == 0
            taken = seconds(replicas[name], inputs, targets, steps, busy)
            if round_ >= WARM_UP and dist.get_rank() == 0:
                report(model=make.__name__, way=name, seconds=taken)
    del replicas
