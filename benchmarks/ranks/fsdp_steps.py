"""What a rank of the benchmark `fsdp` does: steps of the same model, sharded in several ways.

All ways in turn, round after round; a round of a way is some steps, timed on the slowest rank.
Bytes are counted in steps of their own, which are not timed.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from bytes_alive import BytesAlive
from stages import in_place, shard_blocks
from torch import Tensor, nn

from nbtorchrun.worker import device, init, report

ROUNDS, WARM_UP, STEPS, COUNTED = 12, 3, 2, 8


class Layers(nn.Module):
    """A unit for each of `depth` blocks."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
            for _ in range(depth)
        )
        self.last = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width) -> (B, width)."""
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


MODELS = {  # width, depth, rows
    "12.6 million": (1024, 3, 64),
    "3.4 million": (512, 3, 256),
    "0.4 million": (128, 6, 64),
}
WAYS = {"fully_shard": in_place, "ours": shard_blocks}
KEPT = {"reshard_after_forward": False}


class Training:
    """A sharded model with its optimizer and a batch."""

    def __init__(self, shard: Callable, width: int, depth: int, rows: int) -> None:
        torch.manual_seed(0)
        self.model = shard(Layers(width, depth).to(device()))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=False)
        self.batch = torch.randn(rows, width, device=device())

    def step(self) -> None:
        """Forward, backward and the optimizer's step."""
        self.model(self.batch).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def seconds(self) -> float:
        """The time of a step, on the slowest rank."""
        dist.barrier()
        start = time.perf_counter()
        for _ in range(STEPS):
            self.step()
        if device().type == "cuda":
            torch.cuda.synchronize()
        taken = torch.tensor((time.perf_counter() - start) / STEPS, device=device())
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        return taken.item()


def most_bytes(shard: Callable, *shape: int) -> int:
    """The most that any rank's tensors hold in a step.

    gloo's threads let go of a message late, now and then: of several steps the lowest counts.
    """
    peaks = []
    with BytesAlive() as alive:
        training = Training(shard, *shape)
        for _ in range(2 + COUNTED):
            alive.history.clear()
            training.step()
            peaks.append(max(sum(moment.values()) for moment in alive.history))
    dist.all_reduce(least := torch.tensor(min(peaks[2:]), device=device()), dist.ReduceOp.MAX)
    return least.item()


init()
torch.set_num_threads(1)  # a rank is one core
for name, shape in MODELS.items():
    for kept in (False, True):
        model = f"{name}{', kept after forward' if kept else ''}"
        options = KEPT if kept else {}
        ways = {
            way: lambda module, shard=shard, options=options: shard(module, **options)
            for way, shard in WAYS.items()
        }
        for way, shard in ways.items():
            most = most_bytes(shard, *shape)
            if dist.get_rank() == 0:
                report(model=model, way=way, bytes=most)
        made = {way: Training(shard, *shape) for way, shard in ways.items()}
        for round_ in range(WARM_UP + ROUNDS):
            order = list(made)[:: 1 if round_ % 2 else -1]  # each is first as often as second
            for way in order:
                taken = made[way].seconds()
                if round_ >= WARM_UP and dist.get_rank() == 0:
                    report(model=model, way=way, seconds=taken)
        del made
