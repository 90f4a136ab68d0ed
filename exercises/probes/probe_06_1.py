"""Calls the student's f and g, on all ranks and on smaller groups, and judges both passes."""

import torch
import torch.distributed as dist

from course_utils.checking.findings import random_values, where
from course_utils.worker import init

from beside_whole_layers import look
from exercise_06_1 import f, g

GROUP = "Only the ranks of the group take part. Where does `group` go?"


def probe(name, members: list[int], group, dtype: torch.dtype, how: str = "") -> None:
    """One call of f or g within `members`; `how` says what is special about x."""
    t, function = len(members), {"f": f, "g": g}[name]
    shape = (2, 3) if t == world else (2, 1, 3)
    # The same on every rank: x of f, and the gradient of g.
    values = [random_values(1 + r * (name == "g"), *shape, dtype=dtype) for r in range(world)]
    gradients = [random_values(9 + r * (name == "f"), *shape, dtype=dtype) for r in range(world)]
    if how == "transposed":
        values, gradients = ([each.t() for each in both] for both in (values, gradients))
    x, factors = values[rank], gradients[rank]

    def call(x: torch.Tensor) -> torch.Tensor:
        y = function(x, group)
        # Adds 0 to the output, and to the gradient of x what is not f's.
        return y + (x - x.detach()) if how == "used beside f" and torch.is_tensor(y) else y

    total = sum((gradients if name == "f" else values)[r] for r in members)
    everyone = sum(gradients if name == "f" else values)
    y = x if name == "f" else total
    gradient = (total if name == "f" else factors) + factors * (how == "used beside f")
    summed = [("That is the mean. The terms of a product are added.", total / t)]
    summed = [*summed, (GROUP, everyone)] if t < world else summed
    message = [[["all_reduce", x.nbytes]], *([[]] if t == 1 else [])]
    case = ", ".join([f"{name}{f' of ranks {members}' if t < world else ''}", *how.split(";")[:1]])
    otherwise = {"y": "Forward g adds up what every rank has.", "x": "Backward g sends nothing."}
    mistakes = {"y": summed, "x": [("If y = x0 + x1, what is dy/dx0?", t * factors)]}
    if name == "f":
        otherwise["y"] = "Forward f is a copy: x is already the same on every rank."
        otherwise["x"] = "x was used on every rank of the group. Who adds up what they say?"
        mistakes = {"x": [("That is the mean of the uses. The chain rule adds them.", total / t)]}
        mistakes["x"] += [(GROUP, everyone)] * (t < world)
    if how == "used beside f":
        otherwise["x"] = "What came past f is not f's. What does its backward touch?"
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


init()
rank, world = dist.get_rank(), dist.get_world_size()
first, rest = [0, 1], list(range(2, world))
groups = {tuple(members): dist.new_group(members) for members in (first, rest) if members}
own = first if rank < 2 else rest
for dtype in (torch.float32, torch.float64):
    for name in "gf":
        probe(name, list(range(world)), None, dtype)
        probe(name, list(range(world)), None, dtype, "transposed")
        if world > 2:
            probe(name, own, groups[tuple(own)], dtype)
    probe("f", list(range(world)), None, dtype, "used beside f")
