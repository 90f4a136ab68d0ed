"""What a rank of the benchmark `tp` does: steps of a cut Transformer, ours and PyTorch's."""

import copy
import time
from functools import partial

import torch
import torch.distributed as dist
from tensor_parallel import ParallelTransformer
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
from torch.nn.functional import cross_entropy
from torch_tensor_parallel import BLOCK, ENDS, parallelize_block
from transformer import Transformer

from nbtorchrun.worker import device, init, report

VOCAB_SIZE, HEADS, LAYERS = 960, 12, 4
SIZES = {  # width, tokens a sequence, sequences
    "width 96, 512 tokens": (96, 64, 8),
    "width 384, 1,024 tokens": (384, 128, 8),
}
ROUNDS, WARM_UP, STEPS = 8, 2, 2  # rounds that count, rounds before them, steps of a way in each


# With a copy of x for each of q, k and v, backward sums three times. This plan copies it once.
ONE_COPY = BLOCK | {
    "attention": PrepareModuleInput(
        input_layouts=(Replicate(), None), desired_input_layouts=(Replicate(), None)
    )
}


def parallelized(whole: Transformer, plan: dict) -> nn.Module:
    """A copy of the model, cut by PyTorch."""
    model = copy.deepcopy(whole)
    mesh = init_device_mesh(device().type, (dist.get_world_size(),))
    for block in model.layers:
        parallelize_block(block, mesh, plan)
    return parallelize_module(model, mesh, ENDS)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> None:
    """One step of training on tokens (B, T + 1)."""
    logits = model(tokens[:, :-1])
    loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def seconds(work: partial) -> float:
    """How long one of `STEPS` calls takes; all ranks begin together."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(STEPS):
        work()
    if device().type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS


def measure(name: str, width: int, length: int, batch: int) -> None:
    """Report the seconds of each way in each round; both begin with the same parameters."""
    torch.manual_seed(0)
    whole = Transformer(VOCAB_SIZE, width, HEADS, 4 * width, LAYERS, length, 0.0).to(device())
    tokens = torch.randint(VOCAB_SIZE, (batch, length + 1)).to(device())
    models = {
        "ours": ParallelTransformer.from_transformer(whole),
        "parallelize_module": parallelized(whole, BLOCK),
        "and x copied once": parallelized(whole, ONE_COPY),
    }
    works = {
        way: partial(step, model, torch.optim.SGD(model.parameters(), lr=0.01), tokens)
        for way, model in models.items()
    }
    for round_ in range(WARM_UP + ROUNDS):
        order = list(works)[round_ % len(works) :] + list(works)[: round_ % len(works)]
        for way in order:  # nobody is always the one after the slowest
            taken = torch.tensor(seconds(works[way]), device=device())
            dist.all_reduce(taken, dist.ReduceOp.MAX)  # a step is as slow as its slowest rank
            if round_ >= WARM_UP and dist.get_rank() == 0:
                report(size=name, way=way, seconds=taken.item())


init()
torch.set_num_threads(1)  # a rank is one core
for name, sizes in SIZES.items():
    measure(name, *sizes)
