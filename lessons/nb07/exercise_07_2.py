"""07.2: a loss for unequal shares."""

from collections.abc import Callable

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, judge, name_of
from course_utils.checking.findings import observe, random_values
from course_utils.checking.values import is_tensor

TITLE = "a loss for unequal shares"
PROVEN = (
    "1 to 4 ranks with unequal shares, some of them empty: after DDP's average all tokens count",
    "the same, and the gradient flows back to each token's loss, from an empty share, too",
)
OURS = '''"""The loss of one rank, for ranks with unequal numbers of tokens."""

import torch


def rank_loss(losses: torch.Tensor, tokens: int, ranks: int) -> torch.Tensor:
    """The loss on which this rank calls backward, from the loss of each of its tokens: (n,)."""
    return losses.sum() * ranks / tokens  # DDP will divide by `ranks`
'''
SHARES = [(3, 1), (2, 2), (4,), (3, 2, 1), (4, 0, 2), (0, 5, 1, 2)]  # tokens of each rank
COUNTS = "After DDP's average, how much does one token of this rank count? And one of another rank?"


def cases(rank_loss: Callable) -> None:
    """Each rank of several, in single and in double precision."""
    for dtype in (torch.float32, torch.float64):
        for shares in SHARES:
            for rank in range(len(shares)):
                look(rank_loss, shares, rank, dtype)


def look(rank_loss: Callable, shares: tuple[int, ...], rank: int, dtype: torch.dtype) -> None:
    """The loss of one rank, and the gradient that flows back from it."""
    ranks, tokens, own = len(shares), sum(shares), shares[rank]
    losses = random_values(10 * tokens + rank, own, dtype=dtype).abs() + 1
    held = ", ".join(map(str, shares))
    call = f"ranks with {held} tokens, {name_of(dtype)}: rank_loss of rank {rank}"
    found = observe(rank_loss, losses.clone(), tokens, ranks, names=("the losses",))
    total = losses.sum()
    judge(call, found, total * ranks / tokens, mistakes(total, own, tokens, ranks), COUNTS,
          dtype=dtype)  # fmt: skip
    leaf = losses.clone().requires_grad_()
    answer = called(call, rank_loss, leaf, tokens, ranks, may_change=True)
    if not (is_tensor(answer) and answer.requires_grad):
        hint = "Do you compute with the tensor itself, or with numbers taken from it?"
        if not own:
            hint = "DDP waits for every rank's backward. What can this rank call it on?"
        raise Wrong(f"{call}: no gradient flows back to the losses", hint)
    answer.backward()
    got = [0.0] * own if leaf.grad is None else leaf.grad.tolist()
    if any(abs(each - ranks / tokens) > 1e-5 for each in got):
        said = f"{call}: the gradients of its tokens' losses are {got}"
        raise Wrong(f"{said}, expected {ranks / tokens} for each", COUNTS)


def mistakes(
    total: torch.Tensor, own: int, tokens: int, ranks: int
) -> list[tuple[str, torch.Tensor]]:
    """The question for each known mistake, with the loss that it gives."""
    mean = total / max(own, 1)
    return [
        ("What is the mean of no tokens? And their sum?", total * torch.nan),
        ("That is a mean over this rank's own tokens. Then each rank counts the same.", mean),
        ("DDP divides by the number of ranks, too. How do you make up for that?", total / tokens),
        ("DDP divides by the number of ranks. Who else divides by it?", total / tokens / ranks),
        ("That is the sum. Over how many tokens do we want the mean?", total),
        ("Right factor for DDP. Whose tokens does the mean go over?", mean * ranks),
        ("DDP's factor is there. Over how many tokens do we want the mean?", total * ranks),
    ]


SUM, FACTOR = "losses.sum()", " * ranks / tokens"

WRONG = [
    ("the mean of its own", SUM + FACTOR, "losses.mean()", "Then each rank counts the same"),
    ("DDP's division forgotten", " * ranks", "", "DDP divides by the number of ranks, too"),
    ("divided by the ranks", " * ranks", " / ranks", "Who else divides by it?"),
    ("the sum", FACTOR, "", "That is the sum"),
    ("not divided by the tokens", " / tokens", "", "DDP's factor is there"),
    ("its own tokens only", SUM, "losses.mean()", " / tokens", "", "Whose tokens"),
    ("a mean of nothing", SUM, "losses.mean() * len(losses)", "What is the mean of no tokens?"),
    ("a loss for each token", SUM, "losses", "returned"),
    ("a number", "->", "float", "returned a float, expected a Tensor"),
    ("detached", SUM, "losses.detach().sum()", "Do you compute with the tensor itself"),
    ("a new tensor", "->", "lambda loss: loss.new_tensor(loss.item())", "no gradient flows back"),
    (
        "a constant on an empty rank",
        "return ",
        "if len(losses) == 0:\n    return losses.new_zeros(())\nreturn ",
        "DDP waits for every rank's backward",
    ),
    ("in place", SUM, "losses.mul_(ranks).sum()", "ranks / tokens", "1 / tokens", "the losses"),
]
RIGHT = [
    ("token by token", SUM + FACTOR, "(losses * (ranks / tokens)).sum()"),
    ("the rank's mean, weighted", SUM, "losses.sum() / max(1, len(losses)) * len(losses)"),
]
