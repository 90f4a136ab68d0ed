"""09.3: clip across stages."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from course_utils.checking.compare import NAN, Wrong, has_nan, judge, plain
from course_utils.checking.findings import judging, observe, pair, random_values, where
from course_utils.checking.values import close, flat

TITLE = "clip across stages"
PROVEN = (
    "1 to 4 ranks, and pairs of 4; float64, float32, float16; stages without a gradient; infinity:",
    "one norm, one factor, small gradients unchanged; each rank sent a single number",
)
RANKS = (2, 3, 4, 1)
WITHOUT = ("clip_grad_norm_", "clip_grads_with_norm_", "get_total_norm")
INFINITE = "A gradient is infinite. Don't hide that: the training has diverged."
LONELY = "A stage without a gradient has to call the all-reduce, too: the others wait for it."
OURS = '''"""Clip gradients by their norm over all stages of a pipeline."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.worker import device


def clip_grad_norm(
    parameters: Iterable[Tensor], max_norm: float, group: dist.ProcessGroup | None = None
) -> Tensor:
    """Clip the gradients of all ranks' parameters together; the norm before, a 0-dim tensor."""
    gradients = [each.grad for each in parameters if each.grad is not None]
    norm = torch.zeros((), dtype=torch.float64, device=device())
    norm += sum(each.double().square().sum() for each in gradients)
    dist.all_reduce(norm, group=group)  # squares add up, norms do not
    if norm.sqrt_() > max_norm:
        for each in gradients:
            each.mul_(max_norm / norm)
    return norm
'''


def cases(clip_grad_norm: Callable) -> None:
    """Norms, gradients and bytes on 1 to 4 ranks, over all ranks and over pairs."""
    everyone, mine = list(range(dist.get_world_size())), pair()
    before: dict = {}  # by group: the norm of the call before, what it returned, and its value
    for case in ("float64", "float32", "float64 without some", "float16", "float64, infinite"):
        squares = [square(gradients(case, r)) for r in everyone]
        look(clip_grad_norm, case, 0.5, None, everyone, before)
        look(clip_grad_norm, case, 1e5, None, everyone, before)
        # Above the norm of each rank, and below that of all.
        if max(squares) < 0.9 * sum(squares):
            limit = (max(squares) * sum(squares)) ** 0.25
            look(clip_grad_norm, case, limit, None, everyone, before)
        if mine:
            look(clip_grad_norm, case, 0.5, *mine, before)


def gradients(case: str, of_rank: int) -> list[torch.Tensor | None]:
    """The gradients of a rank's stage; every rank can compute those of all ranks."""
    dtype = getattr(torch, case.replace(",", "").partition(" ")[0])
    scale = 300 if dtype == torch.float16 else 1 + of_rank
    sizes = [(3, 2), (4,), (1,)] if of_rank % 2 == 0 else [(5,), (2, 2)]
    seed = 31 * of_rank + len(case)
    made = [(scale * random_values(seed + i, *size)).to(dtype) for i, size in enumerate(sizes)]
    if "without" in case:
        return (
            [None for _ in made]
            if of_rank == 0 and dist.get_world_size() > 1
            else [made[0], None, *made[2:]]
        )
    if "infinite" in case:
        made[0][0] = torch.inf
    return made


def square(tensors: list[torch.Tensor | None]) -> float:
    """The sum of the squares of all values."""
    return sum(t.double().square().sum().item() for t in tensors if t is not None)


def look(
    clip_grad_norm: Callable,
    case: str,
    limit: float,
    group: dist.ProcessGroup | None,
    members: list[int],
    before: dict,
) -> None:
    """Judge what the student's function does with one stage."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine, half = gradients(case, rank), "float16" in case
    parameters = [nn.Parameter(torch.ones(2) if g is None else torch.randn_like(g)) for g in mine]
    for parameter, gradient in zip(parameters, mine, strict=True):
        parameter.grad = None if gradient is None else gradient.clone()
    values = [p.detach().clone() for p in parameters]
    places = [p.grad.data_ptr() for p in parameters if p.grad is not None]
    answer: list[Any] = []

    def clip(*arguments: Any) -> Any:
        answer.append(clip_grad_norm(*arguments))
        return answer[0]

    found = observe(clip, list(parameters), limit, group, may_change=True)
    squares = [square(gradients(case, r)) for r in members]
    norm, own = math.sqrt(sum(squares)), math.sqrt(square(mine))
    factor = min(1.0, limit / norm)
    after = [p.grad for p in parameters if p.grad is not None]
    given = [g for g in mine if g is not None]
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    largest = max(
        t.abs().max().item() for r in members for t in gradients(case, r) if t is not None
    )
    with judging():
        if len(number := flat(found["answer"])) == 1:  # of shape (1,), too
            found["answer"] = number[0]
        last, kept, value = before.get(group, (None, None, None))
        before[group] = norm, answer[0], plain(answer[0])
        mistakes = {
            "That is the norm of this rank alone. How does it learn about the others?": own,
            "You can't add norms. What can you add?": sum(map(math.sqrt, squares)),
            "That is the square of the norm.": norm**2,
            "Is that a mean over the ranks? The norm needs their sum.": norm / len(members) ** 0.5,
            "Is that the norm before clipping?": limit,
            "That is the largest value: the norm is the root of the sum of squares.": largest,
            "That is the norm of the call before. What does yours remember?": last,
        }
        if group:
            over_all = math.sqrt(sum(square(gradients(case, r)) for r in range(world)))
            mistakes["That is the norm over all ranks. Where does `group` go?"] = over_all
        hint = "It is the square root of the sum of all squares, over all ranks. In which dtype?"
        hint = LONELY if "without" in case else hint
        hint = INFINITE if "infinite" in case else hint
        tolerance, kinds = 1e-3 if half else 1e-5, ("float", "int", "Tensor")
        judge(here, found, norm, mistakes, hint, kinds=kinds, tolerance=tolerance)
        if not close(plain(kept), value):
            hint = "The caller may still hold the first norm. Make a new one in every call."
            raise Wrong(f"{here} changed what the call before had returned", hint)
        if "infinite" in case:
            return  # no factor makes such gradients small
        if not all(map(torch.equal, values, (p.detach() for p in parameters))):
            raise Wrong(
                f"{here}: a parameter has changed", "Clipping changes `.grad`, and only that."
            )
        if places != [g.data_ptr() for g in after]:
            raise Wrong(f"{here}: `.grad` is another tensor now", "Scale it in place.")
        loose = {"rtol": 0, "atol": 0} if factor == 1 else {"rtol": 4e-3 if half else 1e-4}
        pairs = list(zip(after, given, strict=True))
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


REDUCE = "dist.all_reduce(norm, group=group)"
TOO_LARGE = "if norm.sqrt_() > max_norm:"
FACTOR = "max_norm / norm"

WRONG = [
    ("each stage alone", REDUCE, "pass", "norm of this rank alone"),
    (
        "norms added",
        REDUCE,
        f"norm.sqrt_()\n{REDUCE}",
        TOO_LARGE,
        "if norm > max_norm:",
        "You can't add norms",
    ),
    (
        "the mean over ranks",
        REDUCE,
        f"{REDUCE}\nnorm /= dist.get_world_size(group)",
        "Is that a mean over the ranks?",
    ),
    ("the group forgotten", REDUCE, "dist.all_reduce(norm)", "a pair"),
    ("always scaled", TOO_LARGE, "if norm.sqrt_() >= 0:", "nothing to clip"),
    ("never scaled", FACTOR, "1", "By which factor?"),
    (
        "by its own norm",
        REDUCE,
        f"own = norm.sqrt()\n{REDUCE}",
        TOO_LARGE,
        "if norm.sqrt_() >= 0:",
        FACTOR,
        "min(1, max_norm / own)",
        "this rank's own norm",
    ),
    (
        "squares in the gradients' dtype",
        "each.double()",
        "each",
        "In which dtype?",
    ),
    (
        "all gradients sent",
        REDUCE,
        "everyone = [None] * dist.get_world_size(group)\n"
        "dist.all_gather_object(everyone, gradients, group)\n"
        "norm.zero_()\n"
        "norm += sum(each.double().square().sum() for part in everyone for each in part)",
        "Only one number.",
    ),
    (
        "the norm after",
        "return norm",
        "return norm.clamp(max=max_norm)",
        "the norm before clipping",
    ),
    (
        "new gradients",
        "gradients = [",
        "parameters = list(parameters)\ngradients = [",
        "for each in gradients:\n            each.mul_(max_norm / norm)",
        "for each in parameters:\n"
        "    if each.grad is not None:\n"
        "        each.grad = each.grad * (max_norm / norm)",
        "Scale it in place",
    ),
    (
        "clips if its own norm is too large",
        REDUCE,
        f"own = norm.sqrt()\n{REDUCE}",
        TOO_LARGE,
        "norm.sqrt_()\nif own > max_norm:",
        "this rank's own norm",
    ),
    (
        "a stage without gradients leaves",
        "norm += sum",
        "if not gradients:\n    return norm\nnorm += sum",
        "this rank alone",
    ),
    (
        "hides an infinity",
        REDUCE,
        f"norm.nan_to_num_(posinf=0)\n{REDUCE}",
        "Don't hide that",
    ),
    (
        "one norm for all calls",
        "return norm",
        "kept = clip_grad_norm.__dict__.setdefault('kept', norm)\nreturn kept.copy_(norm)",
        "changed what the call before had returned",
    ),
]
RIGHT = [
    (
        "with an epsilon, in float32",
        "torch.float64",
        "torch.float32",
        "each.double()",
        "each.float()",
        FACTOR,
        "max_norm / (norm + 1e-6)",
    ),
    (
        "two loops over the parameters",
        "for each in gradients:",
        "for each in [each.grad for each in parameters if each.grad is not None]:",
    ),
]
