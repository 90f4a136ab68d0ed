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

_LAYERS = """
import torch
from torch.nn.functional import linear
from tp_communications import copy_to_group, reduce_from_group
import torch.distributed as dist

def column(x, weight, bias, group=None):
    {column}

def row(x, weight, bias, group=None):
    {row}
"""


def _pair(old: str, new: str) -> str:
    assert old in _PAIR
    return _PAIR.replace(old, new)


def _layers(
    column: str = "return linear(copy_to_group(x, group), weight, bias)",
    row: str = "y = reduce_from_group(linear(x, weight), group)",
    add: str = "return y if bias is None else y + bias",
) -> str:
    return _LAYERS.format(column=column, row=f"{row}\n    {add}")


RIGHT = {
    "06.1": [
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
            "changed x that it was given",
        ),
        (
            "g without a Function",
            _pair("return Reduce.apply(x, group)", "return total(x, group)"),
            "right values, by chance",
        ),
        (
            "g gives the mean",
            _pair("return total(x, group)", "return total(x, group) / dist.get_world_size(group)"),
            "That is the mean. The terms",
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
            "expected nothing",
        ),
        (
            "f as a hook on x",
            _pair(
                "return Copy.apply(x, group)",
                "x.register_hook(lambda gradient: total(gradient, group))\n    return x",
            ),
            "What came past f is not f's",
        ),
    ],
    "06.2": [
        ("no f", _layers("return linear(x, weight, bias)"), "Who adds up what each says?"),
        (
            "g in place of f",
            _layers("return linear(reduce_from_group(x, group), weight, bias)"),
            "x is whole here",
        ),
        (
            "the column gathers",
            _layers(
                "y = linear(copy_to_group(x, group), weight, bias); "
                "parts = [torch.empty_like(y) for _ in range(dist.get_world_size(group))]; "
                "dist.all_gather(parts, y, group); return torch.cat(parts, -1)"
            ),
            "its own outputs only",
        ),
        (
            "the mean of the gradients of x",
            _layers(
                "x = copy_to_group(x, group); "
                "x.register_hook(lambda g: g / dist.get_world_size(group)); "
                "return linear(x, weight, bias)"
            ),
            "The mean?",
        ),
        (
            "the bias before the sum",
            _layers(row="y = reduce_from_group(linear(x, weight, bias), group)", add="return y"),
            "how often is it in?",
        ),
        (
            "a share of the bias on every rank",
            _layers(
                row="n = dist.get_world_size(group); bias = 0 if bias is None else bias / n",
                add="return reduce_from_group(linear(x, weight) + bias, group)",
            ),
            "t times too slowly",
        ),
        (
            "the bias on the first rank only",
            _layers(
                row="first = dist.get_rank(group) == 0; bias = 0 if bias is None else bias * first",
                add="return reduce_from_group(linear(x, weight) + bias, group)",
            ),
            "should learn on every rank",
        ),
        ("no sum", _layers(row="y = linear(x, weight)"), "Is a term missing"),
        (
            "the sum in place, as published",
            _layers(row="y = linear(x, weight); dist.all_reduce(y, group=group)"),
            "right values, by chance",
        ),
        (
            "f before the row",
            _layers(row="y = reduce_from_group(linear(copy_to_group(x, group), weight), group)"),
            "each part is its rank's own",
        ),
        (
            "a bias is always there",
            _layers(add="return y + bias"),
            "unsupported operand",
        ),
        (
            "the group is forgotten",
            _layers(row="y = reduce_from_group(linear(x, weight))"),
            "where does `group` go?",
        ),
        (
            "one layer is still a stub",
            _layers(row="raise NotImplementedError", add="return y"),
            "row still raises NotImplementedError",
        ),
    ],
}
