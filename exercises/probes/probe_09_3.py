"""Calls the student's clip_grad_norm on stages with random gradients, and counts bytes."""

import math

import torch
import torch.distributed as dist
from torch import nn

from course_utils.checking.compare import NAN, Wrong, has_nan, judge
from course_utils.checking.findings import judging, observe, pair, random_values, where
from course_utils.checking.values import flat
from course_utils.worker import init

from exercise_09_3 import clip_grad_norm


def gradients(case: str, of_rank: int) -> list[torch.Tensor | None]:
    """The gradients of a rank's stage; every rank can compute those of all ranks."""
    dtype = getattr(torch, case.partition(" ")[0])
    scale = 300 if dtype == torch.float16 else 1 + of_rank
    sizes = [(3, 2), (4,), (1,)] if of_rank % 2 == 0 else [(5,), (2, 2)]
    seed = 31 * of_rank + len(case)
    made = [(scale * random_values(seed + i, *size)).to(dtype) for i, size in enumerate(sizes)]
    if "without" in case:
        return [None for _ in made] if of_rank == 0 and world > 1 else [made[0], None, *made[2:]]
    return made


def square(tensors: list[torch.Tensor | None]) -> float:
    """The sum of the squares of all values."""
    return sum(t.double().square().sum().item() for t in tensors if t is not None)


def look(case: str, limit: float, group: dist.ProcessGroup | None, members: list[int]) -> None:
    """Judge what the student's function does with one stage."""
    mine, half = gradients(case, rank), "float16" in case
    parameters = [nn.Parameter(torch.ones(2) if g is None else torch.randn_like(g)) for g in mine]
    for parameter, gradient in zip(parameters, mine, strict=True):
        parameter.grad = None if gradient is None else gradient.clone()
    values = [p.detach().clone() for p in parameters]
    places = [p.grad.data_ptr() for p in parameters if p.grad is not None]
    found = observe(clip_grad_norm, list(parameters), limit, group, may_change=True)
    squares = [square(gradients(case, r)) for r in members]
    norm, own = math.sqrt(sum(squares)), math.sqrt(square(mine))
    factor = min(1.0, limit / norm)
    after = [p.grad for p in parameters if p.grad is not None]
    before = [g for g in mine if g is not None]
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    largest = max(
        t.abs().max().item() for r in members for t in gradients(case, r) if t is not None
    )
    with judging():
        if len(number := flat(found["answer"])) == 1:  # of shape (1,), too
            found["answer"] = number[0]
        mistakes = {
            "That is the norm of this rank alone. How does it learn about the others?": own,
            "You can't add norms. What can you add?": sum(map(math.sqrt, squares)),
            "That is the square of the norm.": norm**2,
            "Is that a mean over the ranks? The norm needs their sum.": norm / len(members) ** 0.5,
            "Is that the norm before clipping?": limit,
            "That is the largest value: the norm is the root of the sum of squares.": largest,
            "That is the norm of the call before. What does yours remember?": earlier.get(group),
        }
        if group:
            over_all = math.sqrt(sum(square(gradients(case, r)) for r in range(world)))
            mistakes["That is the norm over all ranks. Where does `group` go?"] = over_all
        earlier[group] = norm
        hint = "It is the square root of the sum of all squares, over all ranks. In which dtype?"
        tolerance, kinds = 1e-3 if half else 1e-5, ("float", "int", "Tensor")
        judge(here, found, norm, mistakes, hint, kinds=kinds, tolerance=tolerance)
        if not all(map(torch.equal, values, (p.detach() for p in parameters))):
            raise Wrong(
                f"{here}: a parameter has changed", "Clipping changes `.grad`, and only that."
            )
        if places != [g.data_ptr() for g in after]:
            raise Wrong(f"{here}: `.grad` is another tensor now", "Scale it in place.")
        loose = {"rtol": 0, "atol": 0} if factor == 1 else {"rtol": 4e-3 if half else 1e-4}
        pairs = list(zip(after, before, strict=True))
        if not all(torch.allclose(a, b * factor, **loose) for a, b in pairs):
            ratio = sum((a.double() * b.double()).sum().item() for a, b in pairs) / own**2
            hint = f"The norm is {norm:.3g} and the limit {limit:.3g}"
            if has_nan(ratio):
                hint = NAN
            elif norm <= limit:
                hint += ": it is below, and there is nothing to clip."
            elif math.isclose(ratio, min(1.0, limit / own), rel_tol=1e-3):
                hint = "That is the factor for this rank's own norm. Use the norm over all ranks."
            else:
                hint += ". By which factor?"
            raise Wrong(f"{here}: gradients scaled by {ratio:.4f}, expected {factor:.4f}", hint)
        if (sent := sum(size for _, size in found["calls"])) > 8 * max(2, world):
            hint = "What do the others need to know about your gradients? Only one number."
            raise Wrong(f"{here} moved {sent} bytes", hint)


init()
rank, world = dist.get_rank(), dist.get_world_size()
mine = pair()
earlier: dict = {}  # by group, the norm of the call before
for case in ("float64", "float32", "float64 without some", "float16"):
    everyone = list(range(world))
    squares = [square(gradients(case, r)) for r in everyone]
    look(case, 0.5, None, everyone)
    look(case, 1e5, None, everyone)
    # Above the norm of each rank, and below that of all.
    if max(squares) < 0.9 * sum(squares):
        look(case, (max(squares) * sum(squares)) ** 0.25, None, everyone)
    if mine:
        look(case, 0.5, *mine)
