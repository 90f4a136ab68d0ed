"""Calls the student's loss over a sharded vocabulary, beside the one of all logits."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.checking.compare import Wrong
from course_utils.checking.findings import judging, pair, random_values, where
from course_utils.meter import meter
from course_utils.worker import device, init

from beside_whole_layers import NEEDED, look
from exercise_06_3 import sharded_cross_entropy

MOST_VALUES = 4  # that a rank may hand to collectives for each position
LARGE = "With small logits yours is right. What is exp(1000)? And whose maximum is taken?"
MASKED = "A token of -inf adds exp(-inf) = 0. What is 0 times -inf? And which operation gives it?"
TARGET = "ln of the sum over the whole vocabulary, minus the target's logit, which one rank has."


def probe(case: str, size: int, targets: list[int], dtype, group, members: list) -> None:
    """One call: `size` tokens of the vocabulary on each of `members`."""
    t, place = len(members), members.index(dist.get_rank())
    whole = random_values(5, len(targets), size * t, dtype=dtype)
    whole = {"large": 1000 * whole, "negative": whole - 2000}.get(case, whole).requires_grad_()
    ids = torch.tensor(targets, device=device())
    if case == "masked":  # every second id that is no target can never come
        never = [each for each in range(0, size * t, 2) if each not in targets]
        whole = whole.detach().index_fill(1, torch.tensor(never, device=device()), -torch.inf)
        whole.requires_grad_()
    factors = random_values(6, len(targets), dtype=dtype)
    y = cross_entropy(whole, ids, reduction="none")
    y.backward(factors)
    y, logits = y.detach(), whole.detach().chunk(t, 1)[place].contiguous()
    gradient = whole.grad.chunk(t, 1)[place]
    here = where(f"{case} logits, {len(targets)} x {size}" + f", ranks {members}" * (t < world))
    mistakes = {
        "y": [("A loss for each position, (n,): not their mean.", y.mean())],
        "logits": [("Every rank has it already, and yours adds them up.", t * gradient)],
    }
    hint = {"small": TARGET, "masked": MASKED}.get(case, LARGE)
    hint += " And where does `group` go?" * (t < world)
    values, given = [], ids.clone()

    def call(logits: torch.Tensor) -> torch.Tensor:
        with meter() as moved:
            found = sharded_cross_entropy(logits, given, group)
        values.append(sum(call.bytes for call in moved.calls) / logits.element_size())
        return found

    look(
        here,
        call,
        {"logits": logits},
        factors,
        y,
        {"logits": gradient},
        forward=None,
        backward=[[]],
        mistakes=mistakes,
        otherwise={"y": hint, "logits": "Compare it with the gradient of all logits, sharded."},
    )
    with judging():
        if not torch.equal(given, ids):
            raise Wrong(f"{here} changed targets that it was given", NEEDED)
        if (most := values[0] / len(targets)) > MOST_VALUES:
            said = f"{here} handed {most:g} values per position to collectives, allowed are 4"
            raise Wrong(said, "Which numbers of a rank does the formula need, for each position?")


init()
world, mine = dist.get_world_size(), pair()
all_ranks = None, list(range(world))
for dtype in (torch.float64, torch.float32):
    for case in ("small", "large", "negative", "masked") if dtype is torch.float64 else ("small",):
        # The first and last id of the first rank, of the second, and of the last.
        probe(case, 7, [0, 6, 7, 13, 7 * world - 1], dtype, *all_ranks)
    probe("small", 3, [4], dtype, *all_ranks)
    if mine:
        probe("small", 4, [7, 0, 3], dtype, *mine)
