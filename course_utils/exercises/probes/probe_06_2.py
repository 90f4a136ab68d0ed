"""Calls the student's column layer, with and without a gather, beside the whole layer."""

import torch
import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.exercises.cut_layers import measure
from course_utils.exercises.findings import random_values, report
from course_utils.worker import device, init

from exercise_06_2 import column

init()
rank, ranks = dist.get_rank(), dist.get_world_size()
shapes = {"x": (2, 3), "weight": (2 * ranks, 3), "bias": (2 * ranks,)}


def _part(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    return tensor.chunk(ranks, dim)[rank]


for dtype in (torch.float64, torch.float32):
    whole = {
        name: random_values(seed, *shape, dtype=dtype)
        for seed, (name, shape) in enumerate(shapes.items())
    }
    factors = (
        torch.arange(1.0, 2 * ranks + 1, dtype=dtype, device=device()) / 3
    )  # the gradient of each output
    expected = measure(linear, whole, factors)

    own = {"x": whole["x"], "weight": _part(whole["weight"]), "bias": _part(whole["bias"])}
    right = expected["gradients"]
    right = {"x": right["x"], "weight": _part(right["weight"]), "bias": _part(right["bias"])}
    for gather in (False, True):
        y = expected["y"] if gather else _part(expected["y"], 1)
        found = measure(column, own, factors if gather else _part(factors), gather)
        report(flag=gather, found=found, y=y, gradients=right)
