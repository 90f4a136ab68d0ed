"""Compares the student's step_flops with what PyTorch's counter counts on the course's model."""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from transformer import Transformer

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, kind, plain
from course_utils.checking.findings import judging
from course_utils.checking.values import is_number

from exercise_12_3 import step_flops

# vocab_size, d_model, num_heads, d_ff, num_layers, batch, length
SHAPES = (
    (11, 8, 1, 8, 1, 1, 1),
    (11, 8, 2, 24, 1, 1, 5),
    (97, 12, 4, 20, 2, 2, 7),
    (13, 16, 2, 40, 3, 5, 9),
    (50, 24, 8, 96, 2, 1, 33),
    (7, 8, 2, 16, 5, 4, 3),
)
NAMES = ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers")


def counted(config: dict, batch: int, length: int, recompute: bool) -> int:
    """The FLOPs of the products that really run in a step."""
    model = Transformer(**config, max_len=64, dropout=0.0)
    if recompute:
        for layer in model.layers:
            layer.forward = lambda x, mask, f=layer.forward: checkpoint(
                f, x, mask, use_reentrant=False
            )
    tokens = torch.zeros(batch, length + 1, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    return counter.get_total_flops()


def mistakes(config: dict, batch: int, length: int, recompute: bool) -> dict[str, int]:
    """What known mistakes give, each with its question."""
    V, D, _, F, L = config.values()
    tokens = batch * length
    weights, logits = L * (4 * D * D + 2 * D * F), D * V
    attention = L * 2 * length * D  # products of one token, each 2 FLOPs in forward
    times = 4 if recompute else 3
    right = tokens * (2 * times * (weights + attention) + 6 * logits)
    return {
        "That is for one token. How many tokens are in the step?": right // tokens,
        "That is for one sequence. How many are in the batch?": right // batch,
        "A multiplication *and* an addition: 2 for each term of a product.": right // 2,
        "Where is backward? It has two products for each one in forward.": tokens
        * 2
        * (weights + attention + logits),
        "Attention has two more products, which hold no weights.": tokens
        * (2 * times * weights + 6 * logits),
        "Attention has two products: Q with K, and the probabilities with V.": tokens
        * (2 * times * (weights + attention // 2) + 6 * logits),
        "The counter, and the formula, do not halve attention for the causal mask.": tokens
        * (2 * times * weights + times * attention + 6 * logits),
        "After the last layer, one product makes the logits.": tokens
        * 2
        * times
        * (weights + attention),
        "Looking up an embedding is no product.": right + tokens * 6 * logits,
        "With recompute=True, the layers run forward once more: 4 where you had 3.": tokens
        * (6 * (weights + attention) + 6 * logits),
        "The logits are not recomputed.": tokens * 8 * (weights + attention + logits),
        "Recomputing runs forward again, not backward.": tokens
        * (12 * (weights + attention) + 6 * logits),
        "How many D x D products has a layer? Query, key, value, output.": right
        - tokens * 2 * times * L * D * D,
        "The feed-forward has two products: up and down again.": right
        - tokens * 2 * times * L * D * F,
        "A layer is there L times.": tokens * (2 * times * (weights + attention) // L + 6 * logits),
    }


def look(sizes: tuple[int, ...], recompute: bool, as_object: bool) -> None:
    """Judge one call, with a config that is a dict or an object."""
    *values, batch, length = sizes
    config = dict(zip(NAMES, values, strict=True))
    right = counted(config, batch, length, recompute)
    given = SimpleNamespace(**config) if as_object else config
    how = ", ".join(f"{name}={value}" for name, value in config.items())
    call = f"step_flops({how}; batch={batch}, length={length}, recompute={recompute})"
    arguments = (given, batch, length, True) if recompute else (given, batch, length)
    answer = called(call, step_flops, *arguments)
    if not is_number(got := plain(answer)):
        raise Wrong(f"{call} returned {kind(answer)}, expected a number")
    if got != got:
        raise Wrong(f"{call} returned not-a-number", "Which of your operations gives nan here?")
    if abs(got - right) > 1e-9 * right:
        fits = [
            question
            for question, value in mistakes(config, batch, length, recompute).items()
            if value != right and abs(got - value) <= 1e-9 * value
        ]
        hint = f"Yours is {got / right:.3g} times the right number. Which products did you count?"
        raise Wrong(f"{call} returned {got:,}, expected {right:,}", fits[0] if fits else hint)


# A larger one first: in it, hardly two mistakes give the same number.
for sizes in (SHAPES[3], *SHAPES):
    for recompute in (False, True):
        with judging():
            look(sizes, recompute, as_object=sizes[0] % 2 == 0)
