"""10.1: top-k with error feedback."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from course_utils.checking.compare import (
    Wrong,
    expect_calls,
    judge,
    name_of,
    plain,
    tensors,
    unlike,
)
from course_utils.checking.findings import judging, observe, pair, random_values, where
from nbtorchrun.worker import device

TITLE = "top-k with error feedback"
PROVEN = (
    "1 to 4 ranks and a group of two, float32 and float64: the mean of what was sent",
    "what is sent and what is kept add up to the gradient and what was kept before",
    "one all-gather of k values and k int32 places, and not a byte more",
)
RANKS = (2, 3, 4, 1)
OURS = '''"""Top-k with error feedback: send the largest values, keep the others."""

import torch
import torch.distributed as dist
from torch import Tensor


def top_k(
    gradient: Tensor, kept: Tensor, share: float, group: dist.ProcessGroup | None = None
) -> tuple[Tensor, Tensor]:
    """The mean of what all ranks sent, (n,), and what this rank keeps for the next time, (n,)."""
    world, whole = dist.get_world_size(group), gradient + kept  # (n,)
    count = max(1, round(share * len(whole)))  # k
    places = whole.abs().topk(count).indices  # (k,)
    mine = torch.cat([whole[places].view(torch.int32), places.int()])  # values, then places
    every = mine.new_empty(world * len(mine))
    dist.all_gather_into_tensor(every, mine, group)
    total = torch.zeros_like(whole)
    for theirs in every.view(world, -1):
        values = theirs[:-count].clone().view(whole.dtype)
        total[theirs[-count:].long()] += values
    whole[places] = 0  # what was sent need not be kept
    return total / world, whole
'''


def cases(top_k: Callable) -> None:
    """Random gradients, of all ranks and of a group; many values; a rank that has diverged."""
    everyone = list(range(dist.get_world_size()))
    sizes = [(5, 0.4), (10, 0.26), (64, 0.1), (7, 1.0), (3, 0.01), (1, 0.5)]
    for number, (n, share) in enumerate(sizes):
        for dtype in (torch.float32, torch.float64):
            case = f"{n} values, share {share:g}, {name_of(dtype)}"
            look(top_k, case, n, share, 100 * number, dtype, None, everyone)
    if len(everyone) == 2:
        far_apart(top_k)
    if mine := pair():
        look(top_k, "a group of two", 9, 0.3, 900, torch.float32, *mine)
    diverged(top_k)


def only(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The values at these places, and 0 elsewhere."""
    return torch.zeros_like(values).index_copy_(0, places, values[places])


def expected(seed: int, n: int, k: int, ranks: list[int], dtype: torch.dtype) -> tuple:
    """By rank: its gradient and what it kept before; and what it should send, (n,)."""
    inputs, sent = {}, {}
    for rank in ranks:
        gradient = random_values(seed + rank, n, dtype=dtype)
        kept = random_values(seed + 50 + rank, n, dtype=dtype)
        whole = gradient + kept
        inputs[rank] = gradient, kept
        sent[rank] = only(whole, whole.abs().topk(k).indices)
    return inputs, sent


def look(
    top_k: Callable,
    case: str,
    n: int,
    share: float,
    seed: int,
    dtype: torch.dtype,
    group,
    ranks: list,
) -> None:
    """One call, of the ranks of a group."""
    here, k, me = where(case), max(1, round(share * n)), dist.get_rank()
    inputs, sent = expected(seed, n, k, ranks, dtype)
    gradient, kept = inputs[me]
    whole, mean = gradient + kept, sum(sent.values()) / len(ranks)
    arguments = (gradient.clone(), kept.clone(), share)
    found = observe(partial(top_k, group=group), *arguments, names=("`gradient`", "`kept`"))
    with judging():
        hint = "Two tensors: the mean over the ranks, and what this rank keeps."
        first, second = tensors(here, found, 2, hint)
        unfed = sum(only(g, g.abs().topk(k).indices) for g, _ in inputs.values())
        wholes = [g + before for g, before in inputs.values()]
        signed = sum(only(whole, whole.topk(k).indices) for whole in wholes)
        fed = "You left out what was kept. Add it to the gradient before you choose."
        mistakes = [
            ("That is the sum over the ranks. What makes it a mean?", mean * len(ranks)),
            ("How many ranks are in the group?", mean * len(ranks) / dist.get_world_size()),
            ("That is what this rank sent. How does it learn about the others?", sent[me]),
            (fed, unfed / len(ranks)),
            ("Choose the largest by magnitude: -5 is larger than 3.", signed / len(ranks)),
            ("That is the mean of everything. Then what do you save over an all-reduce?", whole),
        ]
        if (fewer := max(1, int(share * n))) < k:
            cut = sum(only(each, each.abs().topk(fewer).indices) for each in wholes)
            said = "How large is k? Round share times n; do not cut its fraction off."
            mistakes.append((said, cut / len(ranks)))
        last = torch.zeros_like(whole)
        for part in sent.values():
            last = torch.where(part != 0, part, last)
        mistakes.append(("Two ranks may send the same place. Add their values.", last / len(ranks)))
        terms = [part / len(ranks) for part in sent.values()]
        hint = "Add what was kept, choose the k largest by magnitude, and sum over the ranks."
        hint = "Do all your calls use the group that was passed in?" if group else hint
        judge(f"{here} the mean:", first, mean, mistakes, hint, dtype=dtype, terms=terms)
        mistakes = [
            ("Subtract what was sent. Otherwise it is sent twice.", whole),
            ("You forgot what was kept before.", gradient - sent[me]),
            ("You keep nothing. Where do the small values go?", torch.zeros_like(whole)),
            ("That is what was sent. What was *not* sent?", sent[me]),
            ("Keep what *this* rank did not send, whatever the others sent.", whole - mean),
        ]
        hint = "Sent and kept must add up to the gradient and what was kept before."
        judge(f"{here} what is kept:", second, whole - sent[me], mistakes, hint, dtype=dtype)
    bits = [None] * len(ranks)
    dist.all_gather_object(bits, plain(found["answer"][:1]) if whole_answer(found) else 0, group)
    with judging():
        if apart := [r for r, each in zip(ranks, bits, strict=True) if each != bits[0]]:
            said = f"{here} the mean: rank {apart[0]} and rank {ranks[0]} differ in their last bits"
            hint = (
                "a + b + c in another order rounds otherwise. Does yours begin with its own values?"
            )
            raise Wrong(said, hint)
    with judging():
        values, places = ["all_gather", k * gradient.element_size()], ["all_gather", 4 * k]
        packed = [["all_gather", values[1] + places[1]]]
        allowed = [packed, [values, places], [places, values], *[[]] * (len(ranks) == 1)]
        hint = "Send k values and their places. What else is in your messages?"
        if [call for call, _ in found["calls"]] == ["all_reduce"]:
            hint = "An all-reduce of all n values saves nothing."
        elif sum(size for _, size in found["calls"]) == k * (gradient.element_size() + 8):
            hint = "Send the places as int32: topk returns int64, which takes twice as many bytes."
        expect_calls(here, found["calls"], allowed, hint)


def whole_answer(found: dict) -> bool:
    """Whether it is a tuple of two."""
    return isinstance(found["answer"], list) and len(found["answer"]) == 2


def far_apart(top_k: Callable) -> None:
    """Places that a float32 cannot hold."""
    n = 2**24 + 4
    gradient = torch.zeros(n, device=device())
    gradient[[n - 1, n - 3]] = torch.tensor([3.0, 2.0], device=device())
    with judging():
        try:
            right = torch.equal(top_k(gradient, torch.zeros_like(gradient), 2 / n)[0], gradient)
        except IndexError:  # a place was rounded up beyond the last one
            right = False
        if not right:
            hint = "A float32 holds whole numbers up to 2^24. As what do your places travel?"
            raise Wrong(f"{where(f'{n:,} values')} the mean is not at the right places", hint)


def diverged(top_k: Callable) -> None:
    """A rank's gradient is infinite in one place: the mean must not hide that."""
    gradient = random_values(7, 4)
    gradient[2] = torch.inf if dist.get_rank() == 0 else 1.0
    mean = plain(top_k(gradient, torch.zeros_like(gradient), 0.25)[0])
    with judging():
        if math.isfinite(mean[2]):
            said = f"{where('rank 0 has diverged')} the mean is {unlike(mean[2], math.inf)}"
            raise Wrong(said, "An infinite gradient means trouble. Which of your lines hides it?")


SHARE = "round(share * len(whole))"
SENT = """mine = torch.cat([whole[places].view(torch.int32), places.int()])  # values, then places
    every = mine.new_empty(world * len(mine))
    dist.all_gather_into_tensor(every, mine, group)
    total = torch.zeros_like(whole)
    for theirs in every.view(world, -1):
        values = theirs[:-count].clone().view(whole.dtype)
        total[theirs[-count:].long()] += values"""
KEEP = "whole[places] = 0"
RESULT = "total / world, whole"


def _two(places: str = "torch.int32", add: str = "+=") -> tuple[str, str]:
    """Values and places sent in two messages, as tensors in lists."""
    return SENT, (
        f"values, theirs = whole[places], places.to({places})\n"
        "all_values = [torch.empty_like(values) for _ in range(world)]\n"
        "all_places = [torch.empty_like(theirs) for _ in range(world)]\n"
        "dist.all_gather(all_places, theirs, group)\n"
        "dist.all_gather(all_values, values, group)\n"
        "total = torch.zeros_like(whole)\n"
        "for where, what in zip(all_places, all_values):\n"
        f"    total[where.long()] {add} what"
    )


WRONG = [
    ("a sum", RESULT, "total, whole", "What makes it a mean?"),
    ("not by magnitude", "whole.abs()", "whole", "the largest by magnitude"),
    (
        "forgot what was kept",
        "gradient + kept",
        "gradient.clone()",
        "You left out what was kept",
    ),
    ("keeps what was sent, too", KEEP, "pass", "Subtract what was sent"),
    ("keeps nothing", KEEP, "whole.zero_()", "Where do the small values go?"),
    (
        "keeps what differs from the mean",
        KEEP,
        "whole -= total / world",
        "whatever the others sent",
    ),
    (
        "an all-reduce of everything",
        SENT,
        "total = torch.zeros_like(whole)\n"
        "total[places] = whole[places]\n"
        "dist.all_reduce(total, group=group)",
        "all n values saves nothing",
    ),
    ("places as int64", *_two(places="torch.int64"), "takes twice as many bytes"),
    ("the last of two ranks wins", *_two(add="="), "may send the same place"),
    ("rounds down", SHARE, "int(share * len(whole))", "How large is k?"),
    (
        "works in the gradient it was given",
        "gradient + kept",
        "gradient.add_(kept)",
        "changed `gradient`",
    ),
    (
        "the whole world",
        "get_world_size(group)",
        "get_world_size()",
        "every, mine, group)",
        "every, mine)",
        "a group of two",
    ),
    (
        "float16 on the way",
        RESULT,
        "(total / world).half().to(total.dtype), whole",
        "expected",
    ),
    ("one tensor", RESULT, "total / world", "expected 2 tensors"),
    ("places as float32", *_two(places="torch.float32"), "up to 2^24"),
    (
        "a list of values",
        RESULT,
        "(total / world).tolist(), whole",
        "a list, expected a Tensor",
    ),
]
RIGHT = [
    ("two all-gathers, of lists", *_two()),
    (
        "sorted, and what is left by subtraction",
        "whole.abs()",
        "whole.square()",
        KEEP,
        "whole = whole - torch.zeros_like(whole).index_copy_(0, places, whole[places])",
    ),
    ("halves rounded up", SHARE, "int(share * len(whole) + 0.5)"),
]
