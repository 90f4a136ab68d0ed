"""06.3: a loss over sharded logits."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.checking.compare import Wrong
from course_utils.checking.findings import judging, pair, random_values, where
from lessons.nb06.whole_layers import NEEDED, look
from nbtorchrun.meter import meter
from nbtorchrun.worker import device

TITLE = "a loss over sharded logits"
PROVEN = (
    "2, 3 and 4 ranks: each position's loss and the gradient of each logit, also of large ones",
    "logits of minus infinity, of other tokens; a nan stays",
    "at most 4 values per position in collectives",
)
RANKS = (2, 3, 4)
WITHOUT = ("_functional_collectives", "parallelize_module", "DTensor", "loss_parallel")
OURS = '''"""Cross-entropy when each rank has the logits of some tokens."""

import torch
import torch.distributed as dist
from tp_communications import reduce_from_group


def sharded_cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """From logits (n, V/t) and targets (n,), ids of the whole vocabulary, to the losses (n,)."""
    largest = logits.detach().amax(dim=1)  # (n,): of this part, then of all
    dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
    shifted = logits - largest[:, None]  # (n, V/t), none above 0
    place = targets - dist.get_rank(group) * logits.size(1)
    mine = (place >= 0) & (place < logits.size(1))
    chosen = shifted.gather(1, place.where(mine, 0)[:, None])[:, 0]
    chosen = chosen.where(mine, 0)  # 0 on other ranks; a factor 0 would make -inf not-a-number
    both = torch.stack([shifted.exp().sum(dim=1), chosen])  # (2, n)
    total, chosen = reduce_from_group(both, group)
    return total.log() - chosen
'''
MOST_VALUES = 4  # that a rank may hand to collectives for each position
LARGE = "With small logits yours is right. What is exp(1000)? And whose maximum is taken?"
MASKED = "A token of -inf adds exp(-inf) = 0. What is 0 times -inf? And which operation gives it?"
CERTAIN = "All other tokens have the probability 0. What is added for one of them, exactly 0?"
DIVERGED = "A logit of that position is nan, so its loss is. Do not hide it."
TARGET = "ln of the sum over the whole vocabulary, minus the target's logit, which one rank has."
CASES = {  # besides small logits; with the question for a wrong loss
    "large": LARGE,
    "negative": LARGE,
    "masked": MASKED,
    "certain": CERTAIN,
    "diverged": DIVERGED,
}


def cases(sharded_cross_entropy: Callable) -> None:
    """Small and large logits, impossible tokens, and smaller groups."""
    mine, world = pair(), dist.get_world_size()
    all_ranks = None, list(range(world))
    # The first and last id of the first rank, of the second, and of the last.
    targets = [0, 6, 7, 13, 7 * world - 1]
    for dtype in (torch.float64, torch.float32):
        probe(sharded_cross_entropy, "small", 7, targets, dtype, *all_ranks)
        for case in CASES if dtype is torch.float64 else ():
            probe(sharded_cross_entropy, case, 7, targets, dtype, *all_ranks)
        probe(sharded_cross_entropy, "small", 3, [4], dtype, *all_ranks)
        if mine:
            probe(sharded_cross_entropy, "small", 4, [7, 0, 3], dtype, *mine)


def logits_of(case: str, whole: torch.Tensor, targets: list[int]) -> torch.Tensor:
    """All logits of all positions."""
    ids = torch.arange(whole.size(1), device=whole.device)
    never = torch.isin(ids, ids.new_tensor(targets), invert=True) & (ids % 2 == 0)
    if case == "large":
        return 1000 * whole
    if case == "negative":
        return whole - 2000
    if case == "masked":  # every second id that is no target can never come
        return whole.masked_fill(never, -torch.inf)
    if case == "certain":
        is_target = torch.nn.functional.one_hot(ids.new_tensor(targets), len(ids)).bool()
        return (whole - 2000 * ~is_target).masked_fill(never, -torch.inf)
    if case == "diverged":
        whole[1, -1] = torch.nan
    return whole


def probe(
    sharded_cross_entropy: Callable,
    case: str,
    size: int,
    targets: list[int],
    dtype: torch.dtype,
    group: dist.ProcessGroup | None,
    members: list[int],
) -> None:
    """One call: `size` tokens of the vocabulary on each of `members`."""
    t, place = len(members), members.index(dist.get_rank())
    world = dist.get_world_size()
    whole = random_values(5, len(targets), size * t, dtype=dtype)
    whole = logits_of(case, whole, targets).requires_grad_()
    ids = torch.tensor(targets, device=device())
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
    hint = {"small": TARGET, **CASES}[case]
    hint += " And where does `group` go?" * (t < world)
    past = "Compare it with the gradient of all logits, sharded."
    past = hint if case in ("certain", "diverged") else past
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
        otherwise={"y": hint, "logits": past},
    )
    with judging():
        if not torch.equal(given, ids):
            raise Wrong(f"{here} changed targets that it was given", NEEDED)
        if (most := values[0] / len(targets)) > MOST_VALUES:
            said = f"{here} handed {most:g} values per position to collectives, allowed are 4"
            raise Wrong(said, "Which numbers of a rank does the formula need, for each position?")


MAXIMUM = "dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)"
REDUCE = "reduce_from_group(both, group)"
LOSSES = "total.log() - chosen"

SHIFTED = "shifted = logits - largest[:, None]"

WRONG = [
    (
        "minus infinity as -30",
        SHIFTED,
        f"{SHIFTED}\nshifted = shifted.masked_fill(logits.isinf(), -30)",
        "exactly 0?",
    ),
    ("none below -30", "shifted.exp()", "shifted.clamp(min=-30).exp()", "exactly 0?"),
    (
        "only minus infinity as -30, before",
        "largest = logits",
        "logits = logits.masked_fill(logits == -torch.inf, -30)\nlargest = logits",
        "exactly 0?",
    ),
    ("nan as 0", LOSSES, f"({LOSSES}).nan_to_num(0)", "Do not hide it"),
    (
        "all ranks, whatever the group",
        REDUCE,
        "reduce_from_group(both)",
        "where does `group` go?",
    ),
    (
        "a factor 0 for the target of others",
        "chosen.where(mine, 0)",
        "chosen * mine",
        "0 times inf",
    ),
    (
        "the largest of all without their sign",
        "logits.detach()",
        "logits.detach().abs()",
        MAXIMUM,
        "dist.all_reduce(largest, dist.ReduceOp.MAX)",
        "whose maximum is taken?",
    ),
    (
        "the last id of a part lost",
        "place < logits.size(1)",
        "place < logits.size(1) - 1",
        "minus the target's logit",
    ),
    ("squeezed, and one position is none", LOSSES, f"({LOSSES}).squeeze()", "expected"),
    (
        "the targets are overwritten",
        "both = torch",
        "targets.zero_()\nboth = torch",
        "changed targets that it was given",
    ),
    ("parts of seven ids", "* logits.size(1)", "* 7", "the target's logit"),
    ("the maximum from zeros", "amax(dim=1)", "amax(dim=1).clamp(min=0)", "negative logits"),
    (
        "gathers the logits",
        """
from torch.nn.functional import cross_entropy
from tp_communications import gather_from_group

def sharded_cross_entropy(logits, targets, group=None):
    return cross_entropy(gather_from_group(logits), targets, reduction='none')
""",
        "handed",
    ),
    ("no maximum", " - largest[:, None]", "", "What is exp(1000)?"),
    ("each rank's own maximum", MAXIMUM, "pass", "expected"),
    (
        "the target of others not left out",
        "place.where(mine, 0)",
        "place.clamp(0, logits.size(1) - 1)",
        "chosen.where(mine, 0)",
        "chosen",
        "minus the target's logit",
    ),
    ("the mean", LOSSES, f"({LOSSES}).mean()", "not their mean"),
    (
        "a plain all-reduce",
        f"total, chosen = {REDUCE}",
        "dist.all_reduce(both, group=group)\ntotal, chosen = both",
        "right values, by chance",
    ),
    (
        "f after g",
        "import reduce_from_group",
        "import copy_to_group, reduce_from_group",
        REDUCE,
        f"copy_to_group({REDUCE}, group)",
        "yours adds them up",
    ),
    (
        "the target's logit without a gradient",
        "chosen])",
        "chosen.detach()])",
        "Compare it with the gradient of all logits",
    ),
]
RIGHT = [
    (
        "each part's own logsumexp first",
        """
import torch
import torch.distributed as dist
from tp_communications import reduce_from_group

def sharded_cross_entropy(logits, targets, group=None):
    own = logits.logsumexp(1)
    top = own.detach().clone()
    dist.all_reduce(top, dist.ReduceOp.MAX, group)
    total = reduce_from_group((own - top).exp(), group)
    size = logits.size(1)
    place = targets - dist.get_rank(group) * size
    mine = (place >= 0) & (place < size)
    row = torch.arange(len(targets), device=logits.device)
    chosen = torch.where(mine, logits[row, place.clamp(0, size - 1)], 0)
    return total.log() + top - reduce_from_group(chosen, group)
""",
    )
]
