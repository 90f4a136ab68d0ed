"""Calls the student's column layer, with and without a gather, beside the whole layer."""

import torch
import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.exercises.cut_layers import measure, whole_numbers
from course_utils.exercises.findings import report
from course_utils.worker import device, init

from exercise_06_2 import column

init()
rank, ranks = dist.get_rank(), dist.get_world_size()
shapes = {"x": (2, 3), "weight": (2 * ranks, 3), "bias": (2 * ranks,)}
whole = {name: whole_numbers(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
whole = {name: tensor.to(device()) for name, tensor in whole.items()}
factors = torch.arange(1.0, 2 * ranks + 1, device=device())  # the gradient of each output
expected = measure(linear, whole, factors)


def _part(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    return tensor.chunk(ranks, dim)[rank]


own = {"x": whole["x"], "weight": _part(whole["weight"]), "bias": _part(whole["bias"])}
right = expected["gradients"]
right = {"x": right["x"], "weight": _part(right["weight"]), "bias": _part(right["bias"])}
for gather in (False, True):
    y = expected["y"] if gather else _part(expected["y"], 1)
    found = measure(column, own, factors if gather else _part(factors), gather)
    report(flag=gather, found=found, y=y, gradients=right)
