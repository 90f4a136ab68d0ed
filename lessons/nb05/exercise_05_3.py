"""05.3: fully_shard as it is used."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.checking.compare import Wrong, count
from course_utils.checking.findings import judging, random_values, where
from nbtorchrun.worker import device, worst_of_ranks

TITLE = "fully_shard as it is used"
PROVEN = (
    "2 to 4 ranks, sizes that do not divide: every parameter is sharded and has values",
    "never whole while it is built, few blocks at once in forward; two steps of one process",
)
RANKS = (2, 3, 4)
LONELY = "Does every rank wrap the same modules, in the same order?"
HINTS = {
    "Invariant encountered": "Which wrapping comes last?",
    "SIGABRT": "Does every rank wrap the same modules, in the same order?",
}
OURS = '''"""A sharded model from the meta device: blocks, root, memory and values."""

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from course_utils.worker import device


def prepare(model: nn.Module) -> torch.optim.Optimizer:
    """Shard `model`, which is on the meta device, in place; fill it; return its optimizer."""
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    model.to_empty(device=device())
    model.reset_parameters()
    return torch.optim.SGD(model.parameters(), lr=0.1)
'''
WIDTH, BLOCKS, CLOSE = 13, 8, 1e-12
FEW = 3  # blocks that may be whole at once: the last one may stay whole until backward


def cases(prepare: Callable) -> None:
    """What is wrapped, what is in memory, and two steps beside one process."""
    torch.manual_seed(dist.get_rank())
    with judging():
        look(prepare)


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


def sharded(here: str, name: str, parameter: Tensor) -> None:
    """Refuse a parameter that is not cut, or has no memory."""
    if not isinstance(parameter, DTensor):
        hint = "Which call shards what is in no block? It comes last."
        hint = "Which call shards a block?" if name.startswith("blocks") else hint
        raise Wrong(f"{here}: {name} is not sharded", hint)
    if parameter.is_meta:
        hint = "Which method of a module gives a model on the meta device memory?"
        raise Wrong(f"{here}: {name} is still on the meta device", hint)
    if not parameter.requires_grad:
        raise Wrong(f"{here}: {name} is not trained", "Which line takes its gradient away?")


def prepared(prepare: Callable, here: str) -> tuple[Model, torch.optim.Optimizer]:
    """The model and optimizer that the student's function makes, looked at."""
    with torch.device("meta"):
        model = Model()
    largest = max(each.numel() for each in model.parameters())
    with Largest() as made:
        optimizer = prepare(model)
    if not isinstance(optimizer, torch.optim.SGD):
        said = f"{here}: prepare returned {type(optimizer).__name__}, expected SGD"
        raise Wrong(said, "Return the optimizer. It is the last thing to make.")
    if made.values >= largest:
        said = f"{here}: prepare had {count(made.values, 'value')} in one tensor on this rank"
        hint = f"The largest parameter has {largest}. Shard before there is memory, or after?"
        raise Wrong(said, hint)
    for name, parameter in model.named_parameters():
        sharded(here, name, parameter)
    known = {id(each) for group in optimizer.param_groups for each in group["params"]}
    if known != {id(each) for each in model.parameters()}:
        hint = "fully_shard replaces the parameters. When do you make the optimizer?"
        raise Wrong(f"{here}: the optimizer holds other tensors than the model", hint)
    plain = torch.optim.SGD(model.parameters(), lr=0.1).param_groups[0]
    for group in optimizer.param_groups:
        for name in ("lr", "momentum", "weight_decay", "nesterov", "maximize"):
            if group[name] != plain[name]:
                said = f"{here}: SGD has {name}={group[name]}, expected {plain[name]}"
                raise Wrong(said, "Plain SGD, with a learning rate of 0.1 and nothing else.")
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


def look(prepare: Callable) -> None:
    """Judge one call."""
    here, rank, world = where(), dist.get_rank(), dist.get_world_size()
    model, optimizer = prepared(prepare, here)
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
        hint = "SGD is as asked for. What else of yours changes how the model computes?"
        raise Wrong(said, hint)


FIRST = "for block in model.blocks:"
EACH = FIRST + "\n        fully_shard(block)"
ROOT = "fully_shard(model)"
MEMORY = "model.to_empty(device=device())"
VALUES = "model.reset_parameters()"
SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"

WRONG = [
    ("only the root", EACH, "pass", "8 of 8 blocks are whole"),
    ("only the blocks", ROOT, "pass", "first.weight is not sharded"),
    (
        "memory first",
        MEMORY,
        "pass",
        VALUES,
        "pass",
        FIRST,
        f"{MEMORY}\n{VALUES}\n{FIRST}",
        "Shard before there is memory, or after?",
    ),
    (
        "the optimizer first",
        f"return {SGD}",
        "return optimizer",
        FIRST,
        f"optimizer = {SGD}\n{FIRST}",
        "When do you make the optimizer?",
    ),
    ("no memory", MEMORY, "pass", "still on the meta device"),
    ("no values", VALUES, "pass", "Which method gives values?"),
    (
        "kept after forward",
        "fully_shard(block)",
        "fully_shard(block, reshard_after_forward=False)",
        "blocks are whole",
    ),
    (
        "the root first",
        ROOT,
        "pass",
        FIRST,
        f"{ROOT}\n{FIRST}",
        "Which wrapping comes last?",
    ),
    ("another rate", "lr=0.1", "lr=0.2", "SGD has lr=0.2, expected 0.1"),
    ("momentum", "lr=0.1", "lr=0.1, momentum=0.9", "nothing else"),
    (
        "every second block",
        "for block in model.blocks:",
        "for block in model.blocks[::2]:",
        "What did you wrap?",
    ),
    (
        "computes in another precision",
        "fully_shard(block)",
        "fully_shard(block, mp_policy=MixedPrecisionPolicy(torch.float32, torch.float64))",
        "import fully_shard",
        "import MixedPrecisionPolicy, fully_shard",
        "changes how the model computes",
    ),
    (
        "frozen",
        VALUES,
        f"{VALUES}\nmodel.requires_grad_(False)",
        "is not trained",
    ),
    (
        "one rank wraps no block",
        EACH,
        "for block in model.blocks if torch.distributed.get_rank() else []:\n"
        "    fully_shard(block)",
        "Does every rank wrap the same modules",
    ),
    ("nothing is returned", "return torch", "torch", "returned NoneType, expected SGD"),
]
RIGHT = [
    (
        "the last block stays whole until backward, which needs it first",
        "fully_shard(block)",
        "fully_shard(block, reshard_after_forward=block is not model.blocks[-1])",
    ),
    (
        "the blocks in reverse, and the optimizer before there are values",
        "model.blocks",
        "reversed(model.blocks)",
        ROOT,
        "fully_shard(model, reshard_after_forward=True)",
        f"return {SGD}",
        "return optimizer",
        VALUES,
        f"optimizer = {SGD}\n{VALUES}",
    ),
    (
        "all layers of a block",
        "fully_shard(block)",
        "for layer in (block[0], block[2]):\n    fully_shard(layer)\nfully_shard(block)",
    ),
]
