"""What a rank of the benchmark `pipeline` does: steps of ours and of PyTorch's schedules."""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from pipeline_scratch import Pipeline
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.nn.functional import mse_loss

from nbtorchrun.worker import device, init, report

M, WIDTH, ROWS, UNIT = 8, 64, 64, 0.01
ROUNDS, WARM_UP, STEPS = 8, 2, 3
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Sleep(torch.autograd.Function):
    """Takes one unit of time forward and two backward."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        """Sleep, and give x."""
        time.sleep(UNIT)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        """Sleep twice as long, and give the gradient."""
        time.sleep(2 * UNIT)
        return gradient


class Sleeper(nn.Linear):
    """A linear layer that takes its time."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute, then sleep."""
        return Sleep.apply(super().forward(x))


def seconds(step: Callable[[], object]) -> float:
    """How long one of `STEPS` steps takes on the slowest rank; all begin together."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    taken = torch.tensor((time.perf_counter() - start) / STEPS, device=device())
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.item()


init(at_least=2)
torch.set_num_threads(1)
rank, p = dist.get_rank(), dist.get_world_size()
x = torch.randn(ROWS, WIDTH, device=device())
inputs, targets = ([x] if rank == 0 else []), (x if rank == p - 1 else None)
layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2)]
for work, stage in (("sleep", Sleeper(WIDTH, WIDTH)), ("compute", nn.Sequential(*layers))):
    stage.to(device())
    for name, kind in SCHEDULES.items():
        ours = Pipeline(stage, mse_loss, M, name)
        theirs = kind(PipelineStage(stage, rank, p, device()), M, mse_loss)
        ways = {
            "ours": lambda ours=ours: ours.step(*(inputs or [None]), targets),
            "torch": lambda theirs=theirs: theirs.step(*inputs, target=targets),
        }
        for round_ in range(WARM_UP + ROUNDS):
            for way in sorted(ways, reverse=round_ % 2):  # nobody is always the second
                taken = seconds(ways[way])
                if round_ >= WARM_UP and rank == 0:
                    ideal = 3 * M * UNIT if work == "sleep" else 0
                    report(work=work, schedule=name, way=way, seconds=taken, ideal=ideal)
