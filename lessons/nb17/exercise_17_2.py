"""17.2: the ratio that GRPO clips."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, expect

TITLE = "the ratio that GRPO clips"
PROVEN = (
    "ratios from 1/20 to 20, above, inside and below the limits, for good and bad answers",
    "the loss, and its gradient for every token",
)
OURS = '''"""The loss of GRPO, for answers that an older policy has written."""

from torch import Tensor


def clipped_loss(new: Tensor, old: Tensor, advantage: Tensor, limit: float = 0.2) -> Tensor:
    """A scalar, from log-probabilities new and old (B, T) and the answers' advantages (B,)."""
    ratio = (new - old).exp()  # (B, T): new probability / old probability
    advantage = advantage[:, None]
    held = ratio.clamp(1 - limit, 1 + limit)
    return -(ratio * advantage).minimum(held * advantage).mean()
'''


def right(new: Tensor, old: Tensor, advantage: Tensor, limit: float) -> Tensor:
    """The loss by its definition, token by token."""
    total = torch.zeros((), dtype=new.dtype)
    for row in range(new.size(0)):
        for column in range(new.size(1)):
            r = torch.exp(new[row, column] - old[row, column])
            a = advantage[row]
            total = total + torch.minimum(r * a, torch.clamp(r, 1 - limit, 1 + limit) * a)
    return -total / new.numel()


def cases(clipped_loss: Callable) -> None:
    """Losses and gradients: policies apart, far apart, near, and the same one."""
    for scale in (0.5, 3.0, 0.1, 0.0):
        for rows, columns, limit in ((4, 4, 0.2), (2, 3, 0.2), (3, 1, 0.1), (5, 2, 0.3)):
            look(clipped_loss, scale, rows, columns, limit)


def look(clipped_loss: Callable, scale: float, rows: int, columns: int, limit: float) -> None:
    """One call."""
    drawn = torch.Generator().manual_seed(rows + 10 * columns)
    old = -torch.rand(rows, columns, generator=drawn, dtype=torch.float64) - 0.1
    new = old + scale * (2 * torch.rand(old.shape, generator=drawn, dtype=torch.float64) - 1)
    advantage = torch.randn(rows, generator=drawn, dtype=torch.float64)
    ours, theirs = (new.clone().requires_grad_() for _ in range(2))
    call = f"log-probabilities up to {scale:g} apart, {rows} answers of {columns}, limit {limit}"
    wanted = right(ours, old, advantage, limit)
    (gradient,) = torch.autograd.grad(wanted, ours)
    got = called(call, clipped_loss, theirs, old.clone(), advantage.clone(), limit)
    if not isinstance(got, Tensor) or got.dim():
        shape = tuple(got.shape) if isinstance(got, Tensor) else type(got).__name__
        raise Wrong(f"{call}: got {shape}, expected one number", "Return the mean over all tokens.")
    ratio, a = (new - old).exp(), advantage[:, None]
    held = ratio.clamp(1 - limit, 1 + limit)
    whole = (new - old).sum(1, keepdim=True).exp()
    whole_held = whole.clamp(1 - limit, 1 + limit)
    mistakes = {
        "A good answer should become likelier. Does your loss fall then?": -wanted.item(),
        "That is the sum over the tokens. Take the mean.": wanted.item() * new.numel(),
        "Nothing is clipped. What if the ratio is far from 1?": -(ratio * a).mean().item(),
        "Always clipped: then a bad answer can't be pushed back. Which of two do you take?": (
            -(held * a).mean().item()
        ),
        "The better of the two lets a policy run away. GRPO takes the worse.": (
            -(ratio * a).maximum(held * a).mean().item()
        ),
        "Old over new? Which policy does the optimizer change?": (
            -((1 / ratio) * a).minimum((1 / held) * a).mean().item()
        ),
        "GRPO has a ratio for each token, not one for the answer.": (
            -(whole * a).minimum(whole_held * a).mean().item()
        ),
    }
    hint = "ratio = new probability / old probability; you are given logarithms."
    expect(f"{call}: the loss is", got.item(), wanted.item(), mistakes, hint, tolerance=1e-9)
    if not got.requires_grad:
        raise Wrong(f"{call}: the loss has no gradient", "What cuts it off from `new`?")
    (found,) = torch.autograd.grad(got, theirs, allow_unused=True)
    hint = "The loss is right, its gradient isn't. Which tensor must keep its history?"
    found = torch.zeros_like(gradient) if found is None else found
    expect(f"{call}: the gradient is", found.tolist(), gradient.tolist(), (), hint, tolerance=1e-9)


RATIO = "ratio = (new - old).exp()  # (B, T): new probability / old probability"
RETURN = "return -(ratio * advantage).minimum(held * advantage).mean()"

WRONG = [
    ("the sign", RETURN, RETURN.replace("-(", "("), "Does your loss fall then?"),
    ("the sum", RETURN, RETURN.replace("mean", "sum"), "Take the mean"),
    ("not clipped", RETURN, "return -(ratio * advantage).mean()", "Nothing is clipped"),
    ("always clipped", RETURN, "return -(held * advantage).mean()", "pushed back"),
    ("the better", RETURN, RETURN.replace("minimum", "maximum"), "takes the worse"),
    ("upside down", RATIO, "ratio = (old - new).exp()", ""),
    ("a ratio of logarithms", RATIO, "ratio = new / old", "you are given logarithms"),
    ("no exp", RATIO, "ratio = new - old", "you are given logarithms"),
    (
        "one ratio for an answer",
        RATIO,
        "ratio = (new - old).sum(dim=1, keepdim=True).exp().expand_as(new)",
        "not one for the answer",
    ),
    ("no history", RATIO, "ratio = (new.detach() - old).exp()", "What cuts it off"),
    ("per answer", RETURN, f"{RETURN[:-7]}.mean(dim=1)", "Return the mean over all tokens"),
    (
        "logarithms clipped",
        "held = ratio.clamp(1 - limit, 1 + limit)",
        "held = (new - old).clamp(-limit, limit).exp()",
        "you are given logarithms",
    ),
]
RIGHT = [
    (
        "by the sign of the advantage",
        RETURN,
        "high = ratio.clamp(max=1 + limit)\n"
        "low = ratio.clamp(min=1 - limit)\n"
        "return -(advantage * high.where(advantage > 0, low)).mean()",
    ),
]
