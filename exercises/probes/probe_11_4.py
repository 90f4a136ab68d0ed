"""Calls the student's repaired step with masked tokens, and compares with one process."""

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, expect, judge, plain
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_11_4 import train_step

WIDTH = 3
# how many valid tokens each rank has
CASES = {
    "as many valid tokens on every rank": (4, 4, 4, 4),
    "uneven valid tokens": (7, 1, 3, 2),
    "a rank without a valid token": (5, 0, 2, 1),
    "no valid token at all": (0, 0, 0, 0),
}
init()
rank, world = dist.get_rank(), dist.get_world_size()


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


def look(case: str, seed: int) -> None:
    """One step."""
    weight = random_values(seed + 50, WIDTH, dtype=torch.float64).requires_grad_()
    every = [tokens(seed, place, CASES[case][place]) for place in range(world)]
    losses, gradients = zip(*(part(weight, *each) for each in every), strict=True)
    counts = [int(valid.sum()) for *_, valid in every]
    own, count = max(1, counts[rank]), max(1, sum(counts))
    held, total = sum(len(x) for x, *_ in every), sum(gradients)
    names = ("`weight`", "`x`", "`targets`", "`valid`")
    found = observe(train_step, weight, *every[rank], names=names, again=False)
    here = where(case)
    with judging():
        mistakes = {
            "That is this rank's loss. The other ranks have losses, too.": losses[rank] / own,
            "That is this rank's part of the loss. Who adds up the parts?": losses[rank] / count,
            "That is the mean of the ranks' means: a rank with one token weighs as much as any.": (
                sum(each / max(1, n) for each, n in zip(losses, counts, strict=True)) / world
            ),
        }
        right = sum(losses) / count
        judge(f"{here}: the loss", found, right, mistakes, dtype=torch.float64, verb="is")
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
        expect(f"{here}: weight.grad is", got, plain(total / count), mistakes, hint)


for seed, case in enumerate(CASES):
    look(case, 100 * seed)
