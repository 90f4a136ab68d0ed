"""Calls the student's row layer, with an input that is cut and with a whole one."""

import torch
import torch.distributed as dist
from torch.nn.functional import linear

from course_utils.exercises.cut_layers import measure
from course_utils.exercises.findings import random_values, report
from course_utils.worker import device, init

from exercise_06_3 import row

init()
rank, ranks = dist.get_rank(), dist.get_world_size()
shapes = {"x": (2, 2 * ranks), "weight": (3, 2 * ranks), "bias": (3,)}


def _part(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(ranks, 1)[rank]


for dtype in (torch.float64, torch.float32):
    whole = {
        name: random_values(seed, *shape, dtype=dtype)
        for seed, (name, shape) in enumerate(shapes.items())
    }
    factors = (
        torch.arange(1.0, 4.0, dtype=dtype, device=device()) / 3
    )  # the gradient of each output
    expected = measure(linear, whole, factors)

    for cut in (True, False):
        own = whole | {"weight": _part(whole["weight"])}
        right = expected["gradients"] | {"weight": _part(expected["gradients"]["weight"])}
        if cut:
            own, right = own | {"x": _part(own["x"])}, right | {"x": _part(right["x"])}
        report(flag=cut, found=measure(row, own, factors, cut), y=expected["y"], gradients=right)
