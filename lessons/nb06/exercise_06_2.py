"""06.2: column and row."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.checking.findings import pair, random_values, where
from lessons.nb06.whole_layers import look

TITLE = "column and row"
PROVEN = (
    "2, 3 and 4 ranks: outputs, and gradients of x, weight and bias, with and without a bias",
    "column: one all-reduce backward; row: one all-reduce forward; nothing else",
)
RANKS = (2, 3, 4)
WITHOUT = ("_functional_collectives", "parallelize_module", "DTensor", "loss_parallel")
OURS = '''"""The two ways to shard a linear layer: by its outputs, and by its inputs."""

import torch
from torch.nn.functional import linear
from tp_communications import Group, copy_to_group, reduce_from_group


def column(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, group: Group = None
) -> torch.Tensor:
    """x (..., in), weight (out/t, in), bias (out/t,) -> this rank's outputs (..., out/t)."""
    return linear(copy_to_group(x, group), weight, bias)


def row(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, group: Group = None
) -> torch.Tensor:
    """x (..., in/t), weight (out, in/t), bias (out,) -> (..., out), the same on every rank."""
    y = reduce_from_group(linear(x, weight), group)  # the sum of all terms
    return y if bias is None else y + bias  # once, after the sum
'''
ADDED = "Every rank has this gradient already, and yours adds them up."
CUT = "Compare it with the whole layer's, cut as the tensor is cut."
GROUP = "Only the ranks of the group share this layer. Where does `group` go?"


def cases(column: Callable, row: Callable) -> None:
    """Both layers, on all ranks and on pairs of them."""
    all_ranks, mine = (None, list(range(dist.get_world_size()))), pair()
    for dtype in (torch.float64, torch.float32):
        for layer, kind in ((column, "column"), (row, "row")):
            probe(layer, kind, (2,), True, dtype, *all_ranks)
            probe(layer, kind, (2, 4), False, dtype, *all_ranks)
            if mine:
                probe(layer, kind, (3,), True, dtype, *mine)


def probe(
    layer: Callable,
    kind: str,
    leading: tuple,
    biased: bool,
    dtype: torch.dtype,
    group: dist.ProcessGroup | None,
    members: list[int],
) -> None:
    """One call of `column` or `row`, shared by `members`."""
    t, place = len(members), members.index(dist.get_rank())
    inputs, outputs = (3, 2 * t) if kind == "column" else (2 * t, 3)
    x = random_values(1, *leading, inputs, dtype=dtype).requires_grad_()
    weight = random_values(2, outputs, inputs, dtype=dtype).requires_grad_()
    bias = random_values(3, outputs, dtype=dtype).requires_grad_() if biased else None
    whole = {"x": x, "weight": weight} | ({"bias": bias} if biased else {})
    y = linear(x, weight, bias)
    factors = random_values(4, *leading, outputs, dtype=dtype)
    y.backward(factors)
    y, b = y.detach(), bias.detach() if biased else 0

    def part(tensor: torch.Tensor, name: str) -> torch.Tensor:
        """What this rank has of a tensor or of its gradient."""
        dims = {"weight": 0, "bias": 0, "y": -1} if kind == "column" else {"weight": 1, "x": -1}
        return tensor.chunk(t, dims[name])[place].contiguous() if name in dims else tensor

    own = {name: part(each.detach(), name) for name, each in whole.items()}
    right = {name: part(each.grad, name) for name, each in whole.items()}
    otherwise = {"y": "y = x W^T + b.", "weight": CUT, "bias": CUT, "x": CUT}
    if kind == "column":
        own_y, own_factors = part(y, "y"), part(factors, "y")
        calls = [[]], [[["all_reduce", x.nbytes]]]
        alone = own_factors @ own["weight"]  # what this rank's outputs say of x
        mistakes = {
            "y": [
                ("A rank gives its own outputs only.", y),
                ("x is whole here, and the same on every rank.", linear(t * own["x"], *tail(own))),
                ("Where is the bias?", own_y - part(b, "bias") if biased else own_y * 0),
            ],
            "x": [("That is what your outputs say of x. Who adds up what each says?", alone)],
        }
        mistakes["x"] += [("The mean? The chain rule adds.", right["x"] / t), (ADDED, t * alone)]
    else:
        own_y, own_factors = y, factors
        calls = [[["all_reduce", y.nbytes]]], [[]]
        term = linear(own["x"], own["weight"])
        otherwise["x"] = "x is cut: each part is its rank's own. What does yours add to it?"
        mistakes = {
            "y": [
                ("Off by a multiple of the bias: how often is it in?", y + (t - 1) * b),
                ("Where is the bias?", y - b if biased else y * 0),
                ("Is a term missing? y is the sum over the ranks.", term + b),
                ("That is the mean of the terms. y is their sum.", y / t),
                ("That is the mean of the terms. y is their sum.", (y - b) / t + b),
            ],
        } | {name: [(ADDED, t * each)] for name, each in right.items()}
        if biased:
            slow = "y is right, but this bias learns t times too slowly. Where does it belong?"
            lazy = "Every rank has the bias, and it should learn on every rank. Who uses it?"
            mistakes["bias"] += [(slow, right["bias"] / t), (lazy, right["bias"] * 0)]
            otherwise["no bias"] = lazy
    x_of = f"x {tuple(own['x'].shape)}" + ", no bias" * (not biased)
    shared = f", ranks {members}" * (len(members) < dist.get_world_size())
    if shared:  # every pair of ranks has the same layer
        otherwise["y"] += f" {GROUP}"
        twice = y - b if biased else y
        wider = {"y": y + twice} if kind == "row" else {"x": 2 * right["x"]}
        for name, value in wider.items():
            mistakes[name] = [*mistakes[name], (GROUP, value)]
    look(
        where(f"{kind}, {x_of}{shared}"),
        lambda x, w, b=None: layer(x, w, b, group),
        own,
        own_factors,
        own_y,
        right,
        forward=calls[0],
        backward=calls[1],
        mistakes=mistakes,
        otherwise=otherwise,
    )


def tail(own: dict) -> tuple:
    """Weight and bias."""
    return own["weight"], own.get("bias")


COLUMN = "return linear(copy_to_group(x, group), weight, bias)"
ROW = "reduce_from_group(linear(x, weight), group)"
ADD = "y if bias is None else y + bias"

WRONG = [
    (
        "the column's group is forgotten",
        COLUMN,
        "return linear(copy_to_group(x), weight, bias)",
        "Where does `group` go?",
    ),
    (
        "one rank takes no part",
        ROW,
        f"linear(x, weight)\nif torch.distributed.get_rank():\n    y = {ROW}",
        "Does every rank call every collective",
    ),
    ("no f", "copy_to_group(x, group)", "x", "Who adds up what each says?"),
    ("g in place of f", "(copy_to_group", "(reduce_from_group", "x is whole here"),
    (
        "the column gathers",
        COLUMN,
        "y = linear(copy_to_group(x, group), weight, bias)\n"
        "parts = [y.clone() for _ in range(torch.distributed.get_world_size(group))]\n"
        "torch.distributed.all_gather(parts, y, group)\n"
        "return torch.cat(parts, -1)",
        "its own outputs only",
    ),
    (
        "the mean of the gradients of x",
        COLUMN,
        "x = copy_to_group(x, group)\n"
        "x.register_hook(lambda g: g / torch.distributed.get_world_size(group))\n"
        "return linear(x, weight, bias)",
        "The mean?",
    ),
    (
        "the bias before the sum",
        "linear(x, weight)",
        "linear(x, weight, bias)",
        ADD,
        "y",
        "how often is it in?",
    ),
    (
        "a share of the bias on every rank",
        f"y = {ROW}",
        "share = 0 if bias is None else bias / torch.distributed.get_world_size(group)\n"
        "y = reduce_from_group(linear(x, weight) + share, group)",
        ADD,
        "y",
        "t times too slowly",
    ),
    (
        "the bias on the first rank only",
        f"y = {ROW}",
        "first = torch.distributed.get_rank(group) == 0\n"
        "y = linear(x, weight) + (0 if bias is None else bias * first)\n"
        "y = reduce_from_group(y, group)",
        ADD,
        "y",
        "should learn on every rank",
    ),
    ("no sum", ROW, "linear(x, weight)", "Is a term missing"),
    (
        "the sum in place, as published",
        ROW,
        "linear(x, weight)\ntorch.distributed.all_reduce(y, group=group)",
        "right values, by chance",
    ),
    (
        "f before the row",
        "linear(x, weight)",
        "linear(copy_to_group(x, group), weight)",
        "each part is its rank's own",
    ),
    ("a bias is always there", ADD, "y + bias", "unsupported operand"),
    (
        "the group is forgotten",
        ROW,
        "reduce_from_group(linear(x, weight))",
        "Where does `group` go?",
    ),
    (
        "one layer is still a stub",
        f"y = {ROW}",
        "raise NotImplementedError",
        "row still raises NotImplementedError",
    ),
]
RIGHT = []
