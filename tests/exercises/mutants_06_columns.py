"""Plausible wrong answers to exercises 06.1 and 06.2 of notebook 06, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_PAIR = """
import torch
import torch.distributed as dist
from torch.autograd import Function

def total(x, group):
    x = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(x, group=group)
    return x

class Copy(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x
    @staticmethod
    def backward(ctx, gradient):
        return total(gradient, ctx.group), None

class Reduce(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return total(x, group)
    @staticmethod
    def backward(ctx, gradient):
        return gradient, None

def f(x, group=None):
    return Copy.apply(x, group)

def g(x, group=None):
    return Reduce.apply(x, group)
"""

_COLUMN = """
import torch
import torch.distributed as dist
from torch.nn.functional import linear
from tp_communications import copy_to_group, gather_from_group, reduce_from_group, split_to_group

def column(x, weight, bias, gather):
    {body}
"""


def _pair(old: str, new: str) -> str:
    assert old in _PAIR
    return _PAIR.replace(old, new)


def _column(*lines: str) -> str:
    return _COLUMN.format(body="\n    ".join(lines))


RIGHT = {
    "06.1": [
        (
            "a sum in two halves",
            _pair(
                "    x = x.clone(memory_format=torch.contiguous_format)\n"
                "    dist.all_reduce(x, group=group)\n    return x\n",
                "    world = dist.get_world_size(group)\n"
                "    flat = torch.cat([x.flatten(), x.new_zeros(-x.numel() % world)])\n"
                "    part = flat.new_empty(len(flat) // world)\n"
                "    dist.reduce_scatter_tensor(part, flat, group=group)\n"
                "    whole = torch.empty_like(flat)\n"
                "    dist.all_gather_into_tensor(whole, part, group=group)\n"
                "    return whole[: x.numel()].view(x.shape)\n",
            ),
        ),
        (
            "a group of one sends nothing, as in Megatron-LM",
            _pair(
                "def total(x, group):\n",
                "def total(x, group):\n    if dist.get_world_size(group) == 1:\n        return x\n",
            ),
        ),
    ]
}

MUTANTS = {
    "06.1": [
        (
            "ours",
            "from tp_communications import copy_to_group as f, reduce_from_group as g",
            "tp_communications: that is the course's own",
        ),
        (
            "zeros beside it",
            _pair(
                "    dist.all_reduce(x, group=group)\n    return x\n",
                "    both = torch.stack([x, torch.zeros_like(x)])\n"
                "    dist.all_reduce(both, group=group)\n    return both[0]\n",
            ),
            "What travels besides",
        ),
        (
            "summed in bfloat16",
            _pair(
                "    dist.all_reduce(x, group=group)\n    return x\n",
                "    half = x.bfloat16()\n"
                "    dist.all_reduce(half, group=group)\n    return half.to(x.dtype)\n",
            ),
            "gave",
        ),
        (
            "the gradient is cleared",
            _pair(
                "        return gradient, None",
                "        kept = gradient.clone()\n        gradient.zero_()\n"
                "        return kept, None",
            ),
            "changed the gradient that it was given",
        ),
        (
            "two dimensions only",
            _pair("def total(x, group):\n", "def total(x, group):\n    rows, columns = x.shape\n"),
            "too many values to unpack",
        ),
        ("f does nothing", _pair("return Copy.apply(x, group)", "return x"), "Who adds up"),
        (
            "f sums forward as well",
            _pair(
                "ctx.group = group\n        return x\n",
                "ctx.group = group\n        return total(x, group)\n",
            ),
            "Forward f is a copy",
        ),
        (
            "g sums backward as well",
            _pair("return gradient, None", "return total(gradient, ctx.group), None"),
            "what is dy/dx0?",
        ),
        (
            "g in place",
            _pair("return total(x, group)", "dist.all_reduce(x, group=group)\n        return x"),
            "changed the x",
        ),
        (
            "g without a Function",
            _pair("return Reduce.apply(x, group)", "return total(x, group)"),
            "right values, by chance",
        ),
        (
            "f and g exchanged",
            _pair("return Copy.apply(x, group)", "return Reduce.apply(x, group)").replace(
                "def g(x, group=None):\n    return Reduce", "def g(x, group=None):\n    return Copy"
            ),
            "adds up what every rank has",
        ),
        (
            "g gives the mean",
            _pair("return total(x, group)", "return total(x, group) / dist.get_world_size(group)"),
            "That is the mean. The terms",
        ),
        (
            "f gives the mean gradient",
            _pair(
                "return total(gradient, ctx.group), None",
                "return total(gradient, ctx.group) / dist.get_world_size(ctx.group), None",
            ),
            "The chain rule adds them",
        ),
        (
            "the group is forgotten",
            _pair("dist.all_reduce(x, group=group)", "dist.all_reduce(x)"),
            "Where does `group` go?",
        ),
        (
            "x is broadcast first, to be sure",
            _pair(
                "ctx.group = group\n        return x\n",
                "ctx.group = group\n        x = x.clone()\n"
                "        dist.broadcast(x, group=group, group_src=0)\n        return x\n",
            ),
            "bytes forward, expected nothing",
        ),
        (
            "g is detached",
            _pair("return Reduce.apply(x, group)", "return total(x.detach(), group)"),
            "No gradient came through",
        ),
        (
            "f as a hook on x",
            _pair(
                "return Copy.apply(x, group)",
                "x.register_hook(lambda gradient: total(gradient, group))\n    return x",
            ),
            "What came past f is not f's",
        ),
        (
            "f sums in the memory of its gradient",
            _pair(
                "return total(gradient, ctx.group), None",
                "dist.all_reduce(gradient, group=ctx.group)\n        return gradient, None",
            ),
            "changed the gradient that it was given",
        ),
    ],
    "06.2": [
        (
            "no f",
            _column("y = linear(x, weight, bias)", "return gather_from_group(y) if gather else y"),
            "who adds up what each rank says of it?",
        ),
        (
            "a plain all-gather, as published",
            _column(
                "y = linear(copy_to_group(x), weight, bias)",
                "if not gather: return y",
                "parts = [torch.zeros_like(y) for _ in range(dist.get_world_size())]",
                "dist.all_gather(parts, y)",
                "return torch.cat(parts, dim=-1)",
            ),
            "gradient of weight: None",
        ),
        (
            "always gathers",
            _column("return gather_from_group(linear(copy_to_group(x), weight, bias))"),
            "its own outputs only",
        ),
        (
            "never gathers",
            _column("return linear(copy_to_group(x), weight, bias)"),
            "side by side",
        ),
        (
            "f again after the gather",
            _column(
                "y = linear(copy_to_group(x), weight, bias)",
                "return copy_to_group(gather_from_group(y)) if gather else y",
            ),
            "yours adds them up",
        ),
        (
            "g in place of f",
            _column(
                "y = linear(reduce_from_group(x), weight, bias)",
                "return gather_from_group(y) if gather else y",
            ),
            "x is whole here",
        ),
        (
            "no bias",
            _column(
                "y = linear(copy_to_group(x), weight)",
                "return gather_from_group(y) if gather else y",
            ),
            "W and b are this rank's rows",
        ),
        (
            "the gradient of x averaged",
            _column(
                "x = copy_to_group(x)",
                "x.register_hook(lambda g: g / dist.get_world_size())",
                "y = linear(x, weight, bias)",
                "return gather_from_group(y) if gather else y",
            ),
            "what was divided?",
        ),
        (
            "gathered along the batch",
            _column(
                "y = linear(copy_to_group(x), weight, bias)",
                "return gather_from_group(y, None, 0) if gather else y",
            ),
            "along which dimension?",
        ),
        (
            "x is split first",
            _column(
                "x = gather_from_group(split_to_group(x.repeat(1, dist.get_world_size())))",
                "y = linear(copy_to_group(x[:, : weight.size(1)]), weight, bias)",
                "return gather_from_group(y) if gather else y",
            ),
            "could be spared",
        ),
        (
            "zeros where the others are, and the sum",
            _column(
                "y = linear(copy_to_group(x), weight, bias)",
                "if not gather: return y",
                "before = dist.get_rank() * y.size(1)",
                "after = (dist.get_world_size() - 1) * y.size(1) - before",
                "return reduce_from_group(torch.nn.functional.pad(y, (before, after)))",
            ),
            "Which collective does just this?",
        ),
    ],
}
