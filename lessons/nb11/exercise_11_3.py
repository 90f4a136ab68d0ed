"""11.3: the bug that the loss does not show."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, expect, judge, plain
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.checking.values import is_tensor

TITLE = "the bug that the loss does not show"
PROVEN = (
    "1 to 4 ranks; equal and uneven counts, a rank without valid tokens, none at all:",
    "loss and gradient are those of one process, the same on every rank; an infinity is not hidden",
)
RANKS = (2, 3, 4, 1)
LONELY = "A rank without a valid token has to call every collective, too: the others wait for it."
OURS = '''"""A training step on masked tokens, repaired: one count, and a sum of gradients."""

import torch
import torch.distributed as dist
from torch import Tensor


def train_step(weight: Tensor, x: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """The mean loss over the valid tokens of all ranks; its gradient is left in `weight.grad`."""
    losses = (x @ weight - targets).square() * valid  # (n,)
    total = torch.stack((losses.sum().detach(), valid.sum()))
    dist.all_reduce(total)
    count = total[1].clamp(min=1)  # the valid tokens of all ranks
    (losses.sum() / count).backward()
    dist.all_reduce(weight.grad)  # each rank has a part of the sum
    return total[0] / count
'''
WIDTH = 3
COUNTS = {  # how many valid tokens each rank has
    "as many valid tokens on every rank": (4, 4, 4, 4),
    "uneven valid tokens": (7, 1, 3, 2),
    "a rank without a valid token": (5, 0, 2, 1),
    "no valid token at all": (0, 0, 0, 0),
    "a token that has diverged": (3, 2, 1, 4),
}


def cases(train_step: Callable) -> None:
    """Loss and gradient of a masked step, with uneven valid tokens, with none, and diverged."""
    for seed, case in enumerate(COUNTS):
        look(train_step, case, 100 * seed)


def look(train_step: Callable, case: str, seed: int) -> None:
    """One step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    weight = random_values(seed + 50, WIDTH, dtype=torch.float64).requires_grad_()
    every = [tokens(seed, place, COUNTS[case][place]) for place in range(world)]
    if "diverged" in case:
        every[-1][1][0] = torch.inf  # the loss of the last rank's first token
    losses, gradients = zip(*(part(weight, *each) for each in every), strict=True)
    counts = [int(valid.sum()) for *_, valid in every]
    own, count = max(1, counts[rank]), max(1, sum(counts))
    held, total = sum(len(x) for x, *_ in every), sum(gradients)
    names, returned = ("`weight`", "`x`", "`targets`", "`valid`"), []

    def step(*arguments: Tensor) -> Any:
        returned.append(train_step(*arguments))
        return returned[0]

    found = observe(step, weight, *every[rank], names=names, again=False)
    here = where(case)
    question = LONELY * ("without" in case)
    if "diverged" in case:
        question = "A valid token's loss is infinite. Don't hide that: the training has diverged."
    with judging():
        mistakes = {
            "That is this rank's loss. The other ranks have losses, too.": losses[rank] / own,
            "That is this rank's part of the loss. Who adds up the parts?": losses[rank] / count,
            "That is the mean of the ranks' means: a rank with one token weighs as much as any.": (
                sum(each / max(1, n) for each, n in zip(losses, counts, strict=True)) / world
            ),
            "That is the mean over all tokens. Which of them count?": sum(losses) / held,
            "That is the sum of the losses, not their mean.": sum(losses),
        }
        right = sum(losses) / count
        judge(f"{here}: the loss", found, right, mistakes, question, dtype=torch.float64, verb="is")
        if is_tensor(returned[0]) and returned[0].requires_grad:
            hint = "Who keeps the losses of all steps then keeps all activations. Detach it."
            raise Wrong(f"{here}: the loss that you return has a graph", hint)
        if weight.grad is None:
            raise Wrong(f"{here}: weight.grad is None", "Who calls backward()?")
        pairs = zip(gradients, counts, strict=True)
        means = [gradient / max(1, n) for gradient, n in pairs]
        mistakes = {
            "Each rank divides by its own count of valid tokens. Which count do all share?": (
                sum(means) / world
            ),
            "The ranks' own means, added up. Which count should each rank divide by?": sum(means),
            "Now each rank divides by the count of all. Is the whole the mean of the ranks' parts, "
            "or their sum?": total / count / world,
            "That is this rank's part of the gradient. Who adds up the parts?": (
                gradients[rank] / count
            ),
            "That divides by all tokens. Which of them count?": total / held,
            "That is the gradient of the sum of the losses, not of their mean.": total,
        }
        hint = "What does each rank divide by, and what does the all-reduce make of the parts?"
        got = plain(weight.grad)
        expect(f"{here}: weight.grad is", got, plain(total / count), mistakes, question or hint)


def tokens(seed: int, place: int, valid: int) -> tuple[Tensor, Tensor, Tensor]:
    """A rank's x (n, WIDTH), targets (n,) and valid (n,)."""
    count = 8 + place
    x, targets = (
        random_values(seed + place, count, *more, dtype=torch.float64) for more in ((WIDTH,), ())
    )
    return x, targets, torch.arange(count, device=x.device) < valid


def part(weight: Tensor, x: Tensor, targets: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of a rank's losses, and its gradient."""
    mine = weight.detach().requires_grad_()
    loss = ((x @ mine - targets).square() * valid).sum()
    return loss.detach(), torch.autograd.grad(loss, mine)[0]


LOSSES = "(x @ weight - targets).square()"
LOSS = "losses.sum() / count"
OWN_LOSS = "losses.sum() / valid.sum().clamp(min=1)"
JOIN = "dist.all_reduce(weight.grad)"
MEAN = (JOIN, "dist.all_reduce(weight.grad, dist.ReduceOp.AVG)")

WRONG = [
    ("as it was", LOSS, "losses.sum() / valid.sum()", *MEAN, "its own count"),
    ("at least 1 of its own", LOSS, OWN_LOSS, *MEAN, "its own count"),
    ("own means added", LOSS, OWN_LOSS, "added up"),
    ("the mean of the parts", *MEAN, "or their sum?"),
    ("nobody adds up", JOIN, "pass", "Who adds up the parts?"),
    (
        "all tokens count",
        f"({LOSS}).backward()",
        "tokens = torch.tensor(float(len(losses)))\n"
        "dist.all_reduce(tokens)\n"
        "(losses.sum() / tokens).backward()",
        "Which of them count?",
    ),
    ("the sum", LOSS, "losses.sum()", "not of their mean"),
    ("nothing valid", "total[1].clamp(min=1)", "total[1]", "nan"),
    (
        "its own loss",
        "return total[0] / count",
        f"return ({LOSS}).detach()",
        "part of the loss",
    ),
    ("no backward", JOIN, "weight.grad = None", "weight.grad is None"),
    ("hides a diverged token", LOSSES, f"{LOSSES}.nan_to_num(posinf=0)", "Don't hide that"),
    (
        "hides it in the gradient",
        "return total",
        "weight.grad.nan_to_num_()\nreturn total",
        "Don't hide that",
    ),
    ("a loss with a graph", ".detach(), valid.sum()", ", valid.sum()", "has a graph"),
    (
        "the loss over all tokens",
        "return total[0] / count",
        "held = torch.tensor(len(losses), dtype=losses.dtype)\n"
        "dist.all_reduce(held)\n"
        "return total[0] / held",
        "Which of them count?",
    ),
    ("the sum of the losses", "return total[0] / count", "return total[0]", "not their mean"),
    (
        "a rank without tokens leaves",
        "total = torch",
        "if not valid.any():\n"
        "    weight.grad = torch.zeros_like(weight)\n"
        "    return weight.detach().sum() * 0\n"
        "total = torch",
        "A rank without a valid token",
    ),
]
RIGHT = [
    (
        "multiplied by N, for DDP's mean",
        LOSS,
        f"{LOSS} * dist.get_world_size()",
        *MEAN,
    ),
    ("where", f"{LOSSES} * valid", f"torch.where(valid, {LOSSES}, 0)"),
    (
        "the valid ones alone",
        f"{LOSSES} * valid",
        "(x[valid] @ weight - targets[valid]).square()",
    ),
]
