"""Calls the student's column and row layers, beside the whole layer."""

import torch
import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.checking.findings import pair, random_values, where
from course_utils.worker import init

from beside_whole_layers import look
from exercise_06_2 import column, row

ADDED = "Every rank has this gradient already, and yours adds them up."
CUT = "Compare it with the whole layer's, cut as the tensor is cut."


def probe(kind: str, leading: tuple, biased: bool, dtype, group, members: list) -> None:
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
    otherwise["y"] += " And where does `group` go?" * bool(shared)
    look(
        where(f"{kind}, {x_of}{shared}"),
        lambda x, w, b=None: (column if kind == "column" else row)(x, w, b, group),
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


init()
all_ranks, mine = (None, list(range(dist.get_world_size()))), pair()
for dtype in (torch.float64, torch.float32):
    for kind in ("column", "row"):
        probe(kind, (2,), True, dtype, *all_ranks)
        probe(kind, (2, 4), False, dtype, *all_ranks)
        if mine:
            probe(kind, (3,), True, dtype, *mine)
