"""06.1: f and g."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.findings import random_values, where
from lessons.nb06.whole_layers import look

TITLE = "f and g"
PROVEN = (
    "2, 3 and 4 ranks, and smaller groups: values and gradients, also where x is used beside f",
    "f sends nothing forward, g nothing backward; neither changes what it is given",
    "an infinity stays, in both passes",
)
RANKS = (2, 3, 4)
WITHOUT = ("_functional_collectives", "parallelize_module", "DTensor", "loss_parallel")
OURS = '''"""f and g: a copy whose gradient is a sum, and a sum whose gradient is a copy."""

from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import Function


class Copy(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return Sum.apply(gradient, ctx.group), None


class Sum(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
        ctx.group = group
        total = x.clone(memory_format=torch.contiguous_format)  # somebody may still need x
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return Copy.apply(gradient, ctx.group), None


def f(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """Forward: x. Backward: the sum of every rank's gradient. Any shape."""
    return Copy.apply(x, group)


def g(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """Forward: the sum of every rank's x. Backward: the gradient as it comes. Any shape."""
    return Sum.apply(x, group)
'''
GROUP = "Only the ranks of the group take part. Where does `group` go?"


def cases(f: Callable, g: Callable) -> None:
    """Both, on all ranks and on smaller groups."""
    rank, world = dist.get_rank(), dist.get_world_size()
    first, rest = [0, 1], list(range(2, world))
    groups = {tuple(members): dist.new_group(members) for members in (first, rest) if members}
    every, own = list(range(world)), first if rank < 2 else rest
    for dtype in (torch.float32, torch.float64):
        for function in (g, f):
            probe(function, function is f, every, None, dtype)
            probe(function, function is f, every, None, dtype, "transposed")
            probe(function, function is f, every, None, dtype, "infinite")
            if world > 2:
                probe(function, function is f, own, groups[tuple(own)], dtype)
        probe(f, True, every, None, dtype, "used beside f")


def probe(
    function: Callable,
    is_f: bool,
    members: list[int],
    group: dist.ProcessGroup | None,
    dtype: torch.dtype,
    how: str = "",
) -> None:
    """One call of f or g within `members`; `how` says what is special about x."""
    name, t = "f" if is_f else "g", len(members)
    rank, world = dist.get_rank(), dist.get_world_size()
    shape = (2, 3) if t == world else (2, 1, 3)
    # The same on every rank: x of f, and the gradient of g.
    values = [random_values(1 + r * (name == "g"), *shape, dtype=dtype) for r in range(world)]
    gradients = [random_values(9 + r * (name == "f"), *shape, dtype=dtype) for r in range(world)]
    if how == "transposed":
        values, gradients = ([each.t() for each in both] for both in (values, gradients))
    if how == "infinite":
        (gradients if name == "f" else values)[-1][0, 0] = torch.inf
    x, factors = values[rank], gradients[rank]

    def call(x: torch.Tensor) -> torch.Tensor:
        y = function(x, group)
        # Adds 0 to the output, and to the gradient of x what is not f's.
        return y + (x - x.detach()) if how == "used beside f" and torch.is_tensor(y) else y

    total = sum((gradients if name == "f" else values)[r] for r in members)
    everyone = sum(gradients if name == "f" else values)
    y = x if name == "f" else total
    gradient = total if name == "f" else factors.clone()  # the student is given `factors`
    if how == "used beside f":
        gradient = gradient + factors
    summed = [("That is the mean. The terms of a product are added.", total / t)]
    summed = [*summed, (GROUP, everyone)] if t < world else summed
    message = [[["all_reduce", x.nbytes]], *([[]] if t == 1 else [])]
    case = ", ".join([f"{name}{f' of ranks {members}' if t < world else ''}", how])
    otherwise = {"y": "Forward g adds up what every rank has.", "x": "Backward g sends nothing."}
    mistakes = {"y": summed, "x": [("If y = x0 + x1, what is dy/dx0?", t * factors)]}
    if name == "f":
        otherwise["y"] = "Forward f is a copy: x is already the same on every rank."
        otherwise["x"] = "x was used on every rank of the group. Who adds up what they say?"
        mistakes = {"x": [("That is the mean of the uses. The chain rule adds them.", total / t)]}
        mistakes["x"] += [(GROUP, everyone)] * (t < world)
    if how == "used beside f":
        otherwise["x"] = "What came past f is not f's. What does its backward touch?"
    if how == "infinite":
        otherwise = dict.fromkeys(
            otherwise, "A value is infinite, so their sum is. Do not hide it."
        )
    forward, backward = ([[]], message) if name == "f" else (message, [[]])
    look(
        where(case.strip(", ")),
        call,
        {"x": x},
        factors,
        y,
        {"x": gradient},
        forward=forward,
        backward=backward,
        mistakes=mistakes,
        otherwise=otherwise,
    )


CLONE = "total = x.clone(memory_format=torch.contiguous_format)"
REDUCE = "dist.all_reduce(total, group=group)"
F = "return Copy.apply(x, group)"
G = "return Sum.apply(x, group)"
G_BACK = "return Copy.apply(gradient, ctx.group), None"

WRONG = [
    (
        "hides infinities",
        CLONE,
        f"{CLONE}.nan_to_num(0, 0, 0)",
        "Do not hide it",
    ),
    (
        "one buffer for all calls",
        CLONE,
        "kept = Sum.__dict__.get(f'{x.shape} {x.dtype}')\n"
        f"{CLONE}\n"
        "total = total if kept is None else kept.copy_(x)\n"
        "setattr(Sum, f'{x.shape} {x.dtype}', total)",
        "a later call changed the answer of an earlier one",
    ),
    (
        "the first rank stays away",
        REDUCE,
        f"if dist.get_rank():\n    {REDUCE}",
        "Does every rank call every collective",
    ),
    (
        "zeros beside it",
        REDUCE,
        "both = torch.stack([total, torch.zeros_like(total)])\n"
        "dist.all_reduce(both, group=group)\n"
        "total = both[0]",
        "What travels besides",
    ),
    (
        "summed in bfloat16",
        REDUCE,
        "half = total.bfloat16()\ndist.all_reduce(half, group=group)\ntotal = half.to(total.dtype)",
        "gave",
    ),
    (
        "the gradient is cleared",
        G_BACK,
        "kept = gradient.clone()\ngradient.zero_()\nreturn kept, None",
        "changed the gradient that it was given",
    ),
    (
        "two dimensions only",
        CLONE,
        f"rows, columns = x.shape\n{CLONE}",
        "too many values to unpack",
    ),
    ("f does nothing", F, "return x", "Who adds up"),
    (
        "f sums forward as well",
        F,
        "return Copy.apply(Sum.apply(x, group), group)",
        "Forward f is a copy",
    ),
    (
        "g sums backward as well",
        G_BACK,
        "return Sum.apply(gradient, ctx.group), None",
        "what is dy/dx0?",
    ),
    ("g in place", CLONE, "total = x", "changed x that it was given"),
    (
        "g without a Function",
        G,
        "total = x.clone()\ndist.all_reduce(total, group=group)\nreturn total",
        "right values, by chance",
    ),
    (
        "g gives the mean",
        G,
        f"{G} / dist.get_world_size(group)",
        "That is the mean. The terms",
    ),
    (
        "the group is forgotten",
        REDUCE,
        "dist.all_reduce(total)",
        "Where does `group` go?",
    ),
    (
        "x is broadcast first, to be sure",
        "ctx.group = group\n        return x",
        "ctx.group = group\nx = x.clone()\ndist.broadcast(x, group=group, group_src=0)\nreturn x",
        "expected nothing",
    ),
    (
        "f as a hook on x",
        F,
        "x.register_hook(lambda gradient: Sum.apply(gradient, group))\nreturn x",
        "What came past f is not f's",
    ),
]
RIGHT = [
    (
        "a group of one sends nothing, as in Megatron-LM",
        CLONE,
        f"if dist.get_world_size(group) == 1:\n    return x\n{CLONE}",
    ),
]
