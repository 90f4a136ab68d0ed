"""Calls the student's gradients() on every mesh dp x tp, and compares with one process's autograd.

The student's function knows nothing of meshes: it gets the two process groups.
"""

import copy
from collections.abc import Mapping

import torch
import torch.distributed as dist
from mesh import Mesh
from torch import Tensor

from course_utils.checking.calls import same
from course_utils.checking.compare import Wrong, expect, kind
from course_utils.checking.findings import judging, random_values, where
from course_utils.worker import init

from exercise_14_4 import gradients

ROWS, WIDTH, HIDDEN = 10, 5, 12
SHAPES = {"scale": (WIDTH,), "bias": (WIDTH,), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
DIMENSION = {"up": 1, "down": 0}  # the one that tp cuts
SHARDED = "The rows differ over dp, and the columns over tp. Which of the two do you have to sum?"
ONLY_DP = "With tp = 1 only dp is left: a sum over all rows, divided by `rows` once."
TOO_OFTEN = "That is tp times too large: the tp ranks all have this gradient already."
HINTS = {
    "scale": "Each tp rank went back through its own columns of `up`. Where is the sum of them?",
    "bias": "Bias is added after the sum over tp. Over which ranks do the rows differ?",
    "up": SHARDED,
    "down": SHARDED,
}


def one_process(weights: dict[str, Tensor], x: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """What autograd finds for the squared error per row, (B, D) in and out."""
    scale, bias, up, down = (weights[name].clone().requires_grad_() for name in SHAPES)
    out = ((x * scale) @ up).relu() @ down + bias
    loss = (out - targets).square().sum() / len(x)
    found = torch.autograd.grad(loss, (scale, bias, up, down))
    return dict(zip(SHAPES, found, strict=True))


def cut(values: dict[str, Tensor], tp: int, place: int) -> dict[str, Tensor]:
    """What a tp rank has of each."""
    return {
        name: value.tensor_split(tp, DIMENSION[name])[place].clone() if name in DIMENSION else value
        for name, value in values.items()
    }


def look(dp: int, tp: int) -> None:
    """One step on one mesh."""
    mesh = Mesh(dp=dp, tp=tp)
    at = mesh.coordinate()
    weights = {
        name: random_values(seed, *shape, dtype=torch.float64)
        for seed, (name, shape) in enumerate(SHAPES.items())
    }
    x, targets = (random_values(seed, ROWS, WIDTH, dtype=torch.float64) for seed in (8, 9))
    right = cut(one_process(weights, x, targets), tp, at.tp)
    given = (
        cut(weights, tp, at.tp),
        *(rows.tensor_split(dp)[at.dp].clone() for rows in (x, targets)),
    )
    before = copy.deepcopy(given)
    found = gradients(*given, ROWS, mesh.group("dp"), mesh.group("tp"))
    here = where(f"dp = {dp}, tp = {tp}")
    with judging():
        if not isinstance(found, Mapping) or set(found) != set(SHAPES):
            names = ", ".join(SHAPES)
            raise Wrong(f"{here} returned {found!r:.60}", f"Return a dictionary with {names}.")
        for name, value in right.items():
            said = f"{here} has, as the gradient of `{name}`,"
            if not isinstance(found[name], Tensor):
                raise Wrong(f"{said} {kind(found[name])}", "Each gradient is a tensor.")
            too_often = [(TOO_OFTEN, tp * value)] * (tp > 1)
            hint = HINTS[name] if tp > 1 else ONLY_DP
            expect(said, found[name], value, too_often, hint)
        if not same(before, given):
            raise Wrong(f"{here} changed what it was given", "Work on a copy.")


init()
ranks = dist.get_world_size()
for size in range(1, ranks + 1):
    if ranks % size == 0:
        look(ranks // size, size)
