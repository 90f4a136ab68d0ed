"""12.3: a balance loss of all tokens."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, judge
from course_utils.checking.findings import all_and_pair, judging, observe, random_values, where

TITLE = "a balance loss of all tokens"
PROVEN = (
    "1 to 4 ranks, and pairs of 4, with unequal counts of tokens, also none: the parts add up to",
    "the loss of one process, and each rank's scores get the gradient of one process",
)
RANKS = (2, 3, 4, 1)
LONELY = "A rank without tokens has to take part, too: the others wait for it."
HINTS = {
    "does not require grad": "The loss has to depend on `scores`, also on a rank without tokens.",
    "must match the size": "Some expert may have got nothing. Does `bincount` know how many there "
    "are (`minlength`)?",
}
OURS = '''"""The loss that makes experts equally busy, over the tokens of all ranks (Fedus 2021)."""

from typing import Any

import torch
from between_ranks import gather_numbers
from torch import Tensor


def balance_loss(scores: Tensor, chosen: Tensor, group: Any = None) -> Tensor:
    """This rank's part of E * sum of f_i * s_i, from scores (n, E) and choices (n, k): ()."""
    tokens, experts = scores.shape
    counts = chosen.flatten().bincount(minlength=experts).tolist()
    every = torch.tensor(gather_numbers([tokens, *counts], group)).sum(0).to(scores.device)
    share = every[1:].to(scores.dtype) / every[1:].sum().clamp(min=1)  # f (E,), no gradient
    return experts * (share * scores.sum(0)).sum() / every[0].clamp(min=1)
'''
EXPERTS, K = 5, 2
CASES = ("uneven", "an expert without tokens", "a rank without tokens", "no tokens at all")


def cases(balance_loss: Callable) -> None:
    """Values, gradients and what was sent; of all ranks and in pairs."""
    groups = all_and_pair()
    for seed, case in enumerate(CASES):
        for group, members in groups:
            look(balance_loss, case, 100 * seed, group, members)


def look(
    function: Callable,
    case: str,
    seed: int,
    group: dist.ProcessGroup | None,
    members: list[int],
) -> None:
    """One call and its gradient, beside one process."""
    ranks, place = len(members), members.index(dist.get_rank())
    every = [drawn(case, seed, each, ranks) for each in range(ranks)]
    scores, chosen = every[place]
    scores.requires_grad_()
    found = observe(partial(function, group=group), scores, chosen, names=("`scores`", "`chosen`"))
    answer = function(scores, chosen, group)
    gradient = None
    if torch.is_tensor(answer) and answer.requires_grad and answer.numel() == 1:
        answer.sum().backward()
        gradient = scores.grad
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    count = sum(len(each) for each, _ in every)
    tokens = max(1, count)
    share, own = shares([c for _, c in every]), shares([chosen])
    part = EXPERTS * (share * scores.detach().sum(0)).sum() / tokens
    whole = sum(EXPERTS * (share * each.detach().sum(0)).sum() / tokens for each, _ in every)
    mean = scores.detach().sum(0) / max(1, len(scores))
    mistakes = [
        ("f counts this rank's choices alone. Which experts are busy on the others?",
         EXPERTS * (own * scores.detach().sum(0)).sum() / tokens),
        ("Each rank's own loss: that balances within a rank. What is f of all tokens?",
         EXPERTS * (own * mean).sum()),
        ("The mean of the ranks' own losses is not the loss of all tokens. What is f of all?",
         EXPERTS * (own * mean).sum() / ranks),
        ("The parts have to add up. By how many tokens do you divide the scores?",
         EXPERTS * (share * mean).sum()),
        ("Ranks may have unequal counts of tokens. By how many do you divide the scores?",
         EXPERTS * (share * mean).sum() / ranks),
        ("Every rank returns the whole loss, so it counts once for each rank. Return your part.",
         whole),
        ("f has to add up to 1: each token makes k choices.", K * part),
        ("Where is E?", part / EXPERTS),
    ]  # fmt: skip
    with judging():
        hint = "This rank's part has the f of all tokens, and the scores of its own."
        if count:
            judge(here, found, part, mistakes, hint, dtype=torch.float64)
            judge_gradient(here, gradient, (EXPERTS * share / tokens).expand(len(scores), EXPERTS))
        else:  # nobody has tokens: any zero is right, also one that depends on nothing
            judge(here, found, 0.0, mistakes, hint, kinds=("Tensor", "float", "int"))
        spent = sum(size for _, size in found["calls"])
        if spent > 16 * (EXPERTS + 2):
            hint = "The ranks only need each other's counts."
            raise Wrong(f"{here} handed {spent} bytes to collectives", hint)


def judge_gradient(here: str, gradient: Tensor | None, wanted: Tensor) -> None:
    """Raise `Wrong` unless the scores got the gradient of one process."""
    if gradient is None:
        hint = HINTS["does not require grad"]
        raise Wrong(f"{here}: the loss gives the scores no gradient", hint)
    if not torch.allclose(gradient, wanted):
        hint = "f is a count: no gradient. s_i carries it, and only to this rank's scores."
        raise Wrong(f"{here}: the gradient of the scores is wrong", hint)


def shares(chosen: list[Tensor]) -> Tensor:
    """f, the share of the choices that each expert got."""
    counts = torch.cat([each.flatten() for each in chosen]).bincount(minlength=EXPERTS)
    return counts.double() / counts.sum().clamp(min=1)


def drawn(case: str, seed: int, place: int, ranks: int) -> tuple[Tensor, Tensor]:
    """A rank's scores and choices; every rank knows all ranks'."""
    tokens = 7 + 3 * place
    if "no tokens" in case or ("without tokens" in case and "rank" in case and place == ranks - 1):
        tokens = 0
    logits = random_values(seed + place, tokens, EXPERTS, dtype=torch.float64)
    if "expert" in case:
        logits[:, -1] -= 50.0
    scores = logits.softmax(-1)
    return scores, scores.topk(K).indices


GATHERED = "torch.tensor(gather_numbers([tokens, *counts], group)).sum(0)"
RESULT = "return experts * (share * scores.sum(0)).sum() / every[0].clamp(min=1)"

WRONG = [
    (
        "f of its own choices",
        "share = every[1:].to(scores.dtype) / every[1:].sum()",
        "own = torch.tensor(counts).to(scores)\nshare = own / own.sum()",
        "Which experts are busy on the others?",
    ),
    ("its own loss", GATHERED, "torch.tensor([tokens, *counts])", "balances within a rank"),
    (
        "the mean of the ranks' losses",
        GATHERED,
        "torch.tensor([tokens, *counts])",
        RESULT,
        f"{RESULT} / len(gather_numbers([0], group))",
        "is not the loss of all tokens",
    ),
    ("divides by its own tokens", "every[0].clamp(min=1)", "max(1, tokens)", "The parts have to"),
    (
        "the mean over unequal ranks",
        "every[0].clamp(min=1)",
        "max(1, tokens) / len(gather_numbers([0], group))",
        "Ranks may have unequal counts",
    ),
    (
        "the whole loss on every rank",
        RESULT,
        "part = (share * scores.sum(0)).sum() * experts / every[0].clamp(min=1)\n"
        "if torch.distributed.get_world_size() > 1:\n"
        "    whole = part.detach().clone()\n"
        "    torch.distributed.all_reduce(whole, group=group)\n"
        "    part = part + (whole - part).detach()\n"
        "return part",
        "Every rank returns the whole loss",
    ),
    ("k forgotten", "every[1:].sum().clamp(min=1)", "every[0].clamp(min=1)", "k choices"),
    ("E forgotten", "return experts * (", "return (", "Where is E?"),
    (
        "no gradient",
        "scores.sum(0)).sum() /",
        "scores.detach().sum(0)).sum() /",
        "The loss has to depend on `scores`",
    ),
    (
        "a rank without tokens returns a plain zero",
        "return experts * (",
        "if not tokens:\n    return scores.new_zeros(())\nreturn experts * (",
        "also on a rank without tokens",
    ),
    (
        "whole numbers divided in float32",
        "every[1:].to(scores.dtype)",
        "every[1:]",
        "In which dtype do you compute",
    ),
    (
        "nothing divided by nothing",
        "every[0].clamp(min=1)",
        "every[0]",
        "nan",
    ),
    (
        "a rank without tokens leaves",
        "counts = chosen",
        "if not tokens:\n    return scores.sum()\ncounts = chosen",
        "A rank without tokens has to take part",
    ),
    ("all ranks in place of the group", "*counts], group)", "*counts])", "a pair"),
    ("no minlength", "minlength=experts", "", "minlength"),
    (
        "gathers the scores",
        "share = every",
        "if torch.distributed.get_world_size() > 1:\n"
        "    most = max(each[0] for each in gather_numbers([tokens], group))\n"
        "    padded = torch.cat([scores.detach(), scores.new_zeros(most - tokens, experts)])\n"
        "    rows = [torch.empty_like(padded) for _ in gather_numbers([0], group)]\n"
        "    torch.distributed.all_gather(rows, padded.contiguous(), group=group)\n"
        "share = every",
        "each other's counts",
    ),
]
RIGHT = [
    (
        "counts by an all-reduce",
        GATHERED,
        "torch.tensor([tokens, *counts], device=scores.device)\n"
        "if torch.distributed.get_world_size() > 1:\n"
        "    torch.distributed.all_reduce(every, group=group)\n"
        "every = every",
    ),
    (
        "a plain zero where nobody has tokens",
        "return experts * (",
        "if every[0] == 0:\n    return torch.zeros(())\nreturn experts * (",
    ),
    (
        "the number 0 where nobody has tokens",
        "return experts * (",
        "if every[0] == 0:\n    return 0.0\nreturn experts * (",
    ),
    (
        "a float64 before the division",
        "every[1:].to(scores.dtype) / every[1:].sum().clamp(min=1)",
        "every[1:].double() / every[1:].double().sum().clamp(min=1)",
    ),
    ("means first", "(share * scores.sum(0)).sum() / every[0].clamp(min=1)",
     "(share * (scores / every[0].clamp(min=1)).sum(0)).sum()"),
]  # fmt: skip
