"""Calls the student's prepare on a model without memory: what it wraps, holds and trains."""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.checking.compare import Wrong, count
from course_utils.checking.findings import judging, random_values, where
from course_utils.worker import device, init, worst_of_ranks

from exercise_05_3 import prepare

WIDTH, BLOCKS, CLOSE = 13, 5, 1e-7
FEW = 3  # blocks that may be whole at once: the last one may stay whole until backward


class Model(nn.Module):
    """(B, WIDTH) -> (B, 3); odd sizes, and parameters of the root's own on both sides."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.filled = nn.Linear(WIDTH, WIDTH, dtype=torch.float64), 0
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 29), nn.Tanh(), nn.Linear(29, WIDTH)).double()
            for _ in range(BLOCKS)
        )
        self.last = nn.Linear(WIDTH, 3, dtype=torch.float64)

    def reset_parameters(self) -> None:
        """Give values to parameters that have memory."""
        self.filled += not any(each.is_meta for each in self.parameters())
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Blocks around a residual stream."""
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


class Largest(TorchDispatchMode):
    """The most values of any tensor that an operation has made."""

    values = 0

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        result = operator(*arguments, **(named or {}))
        for each in tree_leaves(result):
            if isinstance(each, Tensor) and not isinstance(each, DTensor) and not each.is_meta:
                self.values = max(self.values, each.untyped_storage().nbytes() // 8)
        return result


def whole_blocks(model: Model) -> int:
    """How many blocks are not sharded at this moment."""
    return sum(
        not any(isinstance(each, DTensor) for each in block.parameters()) for block in model.blocks
    )


def sharded(name: str, parameter: Tensor) -> None:
    """Refuse a parameter that is not cut, or has no memory."""
    if not isinstance(parameter, DTensor):
        hint = "Which call shards what is in no block? It comes last."
        hint = "Which call shards a block?" if name.startswith("blocks") else hint
        raise Wrong(f"{here}: {name} is not sharded", hint)
    if parameter.is_meta:
        hint = "Which method of a module gives a model on the meta device memory?"
        raise Wrong(f"{here}: {name} is still on the meta device", hint)


def prepared() -> tuple[Model, torch.optim.Optimizer]:
    """The model and optimizer that the student's function makes, looked at."""
    with torch.device("meta"):
        model = Model()
    largest = max(each.numel() for each in model.parameters())
    with Largest() as made:
        optimizer = prepare(model)
    if not isinstance(optimizer, torch.optim.SGD):
        said = f"{here}: prepare returned {type(optimizer).__name__}, expected SGD"
        raise Wrong(said, "Return the optimizer. It is the last thing to make.")
    if world > 1 and made.values >= largest:
        said = f"{here}: prepare had {count(made.values, 'value')} in one tensor on this rank"
        hint = f"The largest parameter has {largest}. Shard before there is memory, or after?"
        raise Wrong(said, hint)
    for name, parameter in model.named_parameters():
        sharded(name, parameter)
    known = {id(each) for group in optimizer.param_groups for each in group["params"]}
    if known != {id(each) for each in model.parameters()}:
        hint = "fully_shard replaces the parameters. When do you make the optimizer?"
        raise Wrong(f"{here}: the optimizer holds other tensors than the model", hint)
    if not model.filled:
        hint = "to_empty gives memory with whatever was there. Which method gives values?"
        raise Wrong(f"{here}: the parameters have memory, but nobody gave them values", hint)
    return model, optimizer


def train(model: Model, optimizer: torch.optim.Optimizer, batches: Tensor) -> list[int]:
    """A step for each batch; how many blocks are whole when one computes, and after forward."""
    seen: list[int] = []
    for block in model.blocks:
        block.register_forward_pre_hook(lambda *_: seen.append(whole_blocks(model)))
    for rows in batches:
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        seen.append(whole_blocks(model))
        loss.backward()
        optimizer.step()
    return seen


def values(model: Model) -> list[Tensor]:
    """Every parameter, whole; a collective."""
    return [each.detach().full_tensor().clone() for each in model.parameters()]


def look() -> None:
    """Judge one call."""
    model, optimizer = prepared()
    alone = Model().to(device())
    for parameter, value in zip(alone.parameters(), values(model), strict=True):
        parameter.data.copy_(value)
    batches = random_values(0, 2, 2 * world, WIDTH, dtype=torch.float64)
    seen = train(model, optimizer, batches[:, rank::world])
    if max(seen) > FEW:
        said = f"{here}: {max(seen)} of {BLOCKS} blocks are whole at once in forward"
        hint = "What fully_shard wraps is gathered at once. What did you wrap?"
        if seen[0] <= FEW:
            hint = "Which argument of fully_shard keeps a block whole until backward?"
        raise Wrong(said, hint)
    for batch in batches:
        alone.zero_grad()
        alone(batch).square().mean().backward()
        with torch.no_grad():
            for parameter in alone.parameters():
                parameter -= 0.1 * parameter.grad
    pairs = zip(values(model), alone.parameters(), strict=True)
    differences = [(ours - right).abs() for ours, right in pairs]
    if not worst_of_ranks(differences) < CLOSE:
        said = f"{here}: after two steps the model is not the one of one process"
        hint = "Plain SGD with lr=0.1, on what prepare returned: what is other than that?"
        raise Wrong(said, hint)


init()
rank, world, here = dist.get_rank(), dist.get_world_size(), where()
torch.manual_seed(rank)
with judging():
    look()
