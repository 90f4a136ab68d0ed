"""05.1: gather and its gradient."""

from functools import partial
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.autograd import Function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.checking.compare import Wrong, expect, expect_calls, judge, name_of
from course_utils.checking.findings import judging, observe, random_values, where
from nbtorchrun.worker import device

TITLE = "gather and its gradient"
PROVEN = (
    "1 to 4 ranks, float32 and float64: the whole, and the shard of the averaged gradient",
    "one all-gather, one reduce-scatter, and the gradient left as it was",
)
RANKS = (2, 3, 4, 1)  # with 2 much is right that is wrong with 3; a rank alone may send nothing
WITHOUT = ("all_gather_tensor_autograd", "_AllGather", "_AllGatherBase", "_ReduceScatter")
DENSE = "Autograd may give one number, expanded. Which method makes it dense?"
HINTS = {
    "must be contiguous": "Autograd may give one number, expanded. Which method makes it dense?",
    "invalid tensor type": "In which dtype is the shard, and in which is what you make for all?",
    ".dtype() ==": "In which dtype is the gradient, and in which is what you make for its part?",
    "shape compatible": "forward was given n/N values. How many does backward return?",
}
OURS = '''"""The all-gather of a shard, and its gradient."""

import torch
import torch.distributed as dist
from torch import Tensor


class Gather(torch.autograd.Function):
    """Forward: all-gather the shards. Backward: reduce-scatter the gradient."""

    @staticmethod
    def forward(ctx, shard: Tensor) -> Tensor:  # (n/N,) -> (n,)
        whole = shard.new_empty(dist.get_world_size() * len(shard))
        dist.all_gather_into_tensor(whole, shard)
        return whole

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # (n,) -> (n/N,)
        world = dist.get_world_size()
        part = gradient.new_empty(len(gradient) // world)
        dist.reduce_scatter_tensor(part, gradient.contiguous() / world)
        return part
'''


def cases(Gather: Function) -> None:
    """Shards of several sizes and dtypes, in both passes."""
    for number, size in enumerate((2, 1, 37)):
        for dtype in (torch.float32, torch.float64):
            case = f"{size * dist.get_world_size()} values, {name_of(dtype)}"
            look(Gather, case, size, dtype, 100 * number)
    look(Gather, "the gradient of a sum", 3, torch.float32, 900, expanded=True)
    look(Gather, "a rank that has diverged", 3, torch.float32, 950, diverged=True)
    two_shards(Gather)
    another_forward(Gather)


class Scattered(TorchDispatchMode):
    """Whether a collective was given a tensor that is not contiguous: gloo copies it, NCCL not."""

    given = False

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        if operator.namespace == "c10d":
            tensors = (each for each in tree_leaves(arguments) if isinstance(each, torch.Tensor))
            self.given |= not all(each.is_contiguous() for each in tensors)
        return operator(*arguments, **(named or {}))


def reduced(Gather: Function, shard: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient that the shard gets from one of the whole."""
    leaf = shard.clone().requires_grad_()
    Gather.apply(leaf).backward(gradient)
    return leaf.grad


def look(
    Gather: Function,
    case: str,
    size: int,
    dtype: torch.dtype,
    seed: int,
    expanded: bool = False,
    diverged: bool = False,
) -> None:
    """One shard forward, and one gradient backward."""
    rank, world = dist.get_rank(), dist.get_world_size()
    here = where(case)
    shards = [random_values(seed + r, size, dtype=dtype) for r in range(world)]
    gradients = [random_values(seed + 50 + r, size * world, dtype=dtype) for r in range(world)]
    if expanded:  # as `whole.sum().backward()` gives it: one number, many times
        gradients = [each[:1].expand(size * world) for each in gradients]
    if diverged:
        gradients[-1][:] = torch.inf
    mean = sum(gradients) / world
    own = slice(size * rank, size * (rank + 1))
    gather = ["all_gather", shards[rank].nbytes]
    with judging():
        found = observe(Gather.apply, shards[rank].clone(), names=("the shard",))
        hint = "All ranks' shards, one after another in the order of the ranks."
        judge(f"{here} forward", found, torch.cat(shards), (), hint, dtype=dtype)
        hint = "Which collective gives everybody all shards, and nothing else?"
        allowed = [[gather], *[[]] * (world == 1)]
        expect_calls(f"{here} forward", found["calls"], allowed, hint)
    with judging():
        names = ("the shard", "the gradient")
        with Scattered() as scattered:
            found = observe(partial(reduced, Gather), shards[rank], gradients[rank], names=names)
        times = f"Yours is {world} times too large, and there are {world} ranks. Sum or average?"
        mistakes = [
            (times, (mean * world)[own]),
            ("That is this rank's own. Who tells it of the others?", gradients[rank][own]),
            ("That is this rank's own, divided. Who adds up?", gradients[rank][own] / world),
            ("Divided twice? Count the divisions.", (mean / world)[own]),
            ("That is the piece of another rank.", mean.roll(-size)[own]),
        ]
        hint = "Average all ranks' gradients. Which piece belongs to this rank?"
        hint = "A gradient is infinite, so its mean is. Do not hide it." if diverged else hint
        what = f"{here}: the gradient of its shard"
        known = () if diverged else mistakes
        judge(what, found, mean[own], known, hint, dtype=dtype, verb="is")
        if scattered.given:
            raise Wrong(f"{here} backward gave a collective memory that is not contiguous", DENSE)
        reduce = ["reduce_scatter", mean.nbytes]
        one = [[gather], [reduce], []] if world == 1 else []
        hint = "The whole average is more than this rank needs. Which collective gives its part?"
        expect_calls(f"{here} backward", found["calls"], [[gather, reduce], *one], hint)


def two_shards(Gather: Function) -> None:
    """Shards of several sizes forward before one of them goes backward."""
    here = where("three shards forward, then all backward")
    leaves = [torch.ones(size, device=device(), requires_grad=True) for size in (2, 3, 2)]
    wholes = [Gather.apply(leaf) for leaf in leaves]
    hint = "What does yours remember of a call? It gets all that it needs."
    with judging():
        for number, (leaf, whole) in enumerate(zip(leaves, wholes, strict=True), 1):
            try:
                whole.backward(torch.full_like(whole, number))
            except (AttributeError, RuntimeError, TypeError) as error:
                said = str(error).partition("\n")[0]
                raise Wrong(f"{here}: {type(error).__name__}: {said}", hint) from None
            right = torch.full_like(leaf, number)
            expect(f"{here}: the gradient is", leaf.grad, right, otherwise=hint)


def another_forward(Gather: Function) -> None:
    """The cells after this exercise call `backward` beside a `forward` of their own."""
    here = where("backward, with a ctx that your forward has not seen")
    world = dist.get_world_size()
    hint = "Does backward need anything that its gradient and the world size don't tell?"
    gradient = torch.ones(2 * world, device=device())
    with judging():
        try:
            found = Gather.backward(SimpleNamespace(), gradient)
        except (AttributeError, RuntimeError, TypeError) as error:
            raise Wrong(f"{here}: {type(error).__name__}: {error}", hint) from None
        expect(f"{here}: the gradient is", found, gradient[:2], otherwise=hint)


GATHER = "dist.all_gather_into_tensor(whole, shard)"
REDUCE = "dist.reduce_scatter_tensor(part, gradient.contiguous() / world)"


WRONG = [
    (
        "not made dense",
        REDUCE,
        "dist.reduce_scatter_tensor(part, gradient)\npart /= world",
        "Which method makes it dense?",
    ),
    (
        "always float32",
        "shard.new_empty(dist.get_world_size() * len(shard))",
        "torch.empty(dist.get_world_size() * len(shard))",
        "In which dtype",
    ),
    (
        "a gradient that is always float32",
        "gradient.new_empty(len(gradient) // world)",
        "torch.empty(len(gradient) // world)",
        "In which dtype",
    ),
    (
        "the length kept in the class",
        GATHER,
        f"{GATHER}\nGather.length = len(shard)",
        "len(gradient) // world",
        "Gather.length",
        "It gets all that it needs",
    ),
    (
        "the length kept in ctx",
        GATHER,
        f"{GATHER}\nctx.length = len(shard)",
        "len(gradient) // world",
        "ctx.length",
        "a ctx that your forward has not seen",
    ),
    (
        "nan as 0",
        ".contiguous() / world",
        ".nan_to_num(0, 0, 0) / world",
        "Do not hide it",
    ),
    (
        "one buffer for all calls",
        GATHER,
        "whole = Gather.__dict__.get(str(shard.dtype), whole)\n"
        "setattr(Gather, str(shard.dtype), whole)\n"
        "whole = whole.resize_(dist.get_world_size() * len(shard))\n" + GATHER,
        "one buffer for all calls",
    ),
    (
        "the sum",
        "contiguous() / world",
        "contiguous()",
        "2 times too large, and there are 2 ranks. Sum or average?",
    ),
    (
        "its own",
        REDUCE,
        "part = gradient.chunk(world)[dist.get_rank()]",
        "Who tells it of the others?",
    ),
    (
        "an all-reduce, then a slice",
        REDUCE,
        "whole = gradient / world\n"
        "dist.all_reduce(whole)\n"
        "part = whole.chunk(world)[dist.get_rank()].clone()",
        "Which collective gives its part?",
    ),
    (
        "the whole gradient",
        REDUCE,
        "part = gradient / world\ndist.all_reduce(part)",
        "How many does backward return?",
    ),
    (
        "divided in place",
        REDUCE,
        "gradient /= world\ndist.reduce_scatter_tensor(part, gradient.contiguous())",
        "changed the gradient that it was given",
    ),
    (
        "the neighbour's",
        "gradient.contiguous()",
        "gradient.roll(len(part))",
        "the gradient of its shard is",
    ),
    (
        "gathered in bfloat16",
        GATHER,
        "whole = whole.bfloat16()\ndist.all_gather_into_tensor(whole, shard.bfloat16())",
        "return whole",
        "return whole.to(shard)",
        "forward returned",
    ),
    ("gathered twice", GATHER, f"{GATHER}\n{GATHER}", "expected all_gather of"),
    (
        "the shard is emptied",
        GATHER,
        f"{GATHER}\nshard.zero_()",
        "changed the shard that it was given",
    ),
    (
        "its own, repeated",
        GATHER,
        "whole = shard.repeat(dist.get_world_size())",
        "in the order of the ranks",
    ),
]
RIGHT = [
    (
        "lists, the average by the collective, alone without a message",
        GATHER,
        "world = dist.get_world_size()\n"
        "if world == 1:\n"
        "    return shard.clone()\n"
        "dist.all_gather(list(whole.chunk(world)), shard)",
        REDUCE,
        "parts = list(gradient.clone().contiguous().chunk(world))\n"
        "dist.reduce_scatter(part, parts, op=dist.ReduceOp.AVG)",
    )
]
