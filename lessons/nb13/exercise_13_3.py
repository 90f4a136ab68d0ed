"""13.3: the FLOPs of a step."""

from collections import namedtuple
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from transformer import Transformer

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, expect, kind, plain
from course_utils.checking.values import is_number

TITLE = "the FLOPs of a step"
PROVEN = (
    "6 models, batches and lengths, config as a dict and as an object:",
    "what FlopCounterMode counts, to the last operation, with and without recomputation",
)
WITHOUT = ("FlopCounterMode",)
OURS = '''"""The FLOPs of one training step of `transformer.py`, by formula."""

from collections.abc import Mapping


def sizes(config) -> tuple[int, int, int, int]:
    """V, D, the width of the feed-forward, and L."""
    names = ("vocab_size", "d_model", "d_ff", "num_layers")
    is_dict = isinstance(config, Mapping)
    return tuple(config[name] if is_dict else getattr(config, name) for name in names)


def step_flops(config, batch: int, length: int, recompute: bool = False) -> int:
    """FLOPs of one training step, over all tokens of the batch: 6P + 12LHQT per token.

    Only matrix products count, and attention in full: a causal mask is not subtracted.

    Args:
        config: the arguments of `Transformer`, as a mapping or an object with these attributes:
            vocab_size, d_model, num_heads (does not change the number), d_ff, num_layers.
        batch: sequences in the step, of all ranks if you want the FLOPs of all ranks.
        length: tokens in a sequence.
        recompute: every layer's forward runs twice (activation checkpointing).
    """
    V, D, F, L = sizes(config)
    tokens = batch * length
    weights = 4 * D * D + 2 * D * F  # of the products of a layer
    layers = L * tokens * (2 * weights + 4 * length * D)  # forward; the second term is attention
    logits = tokens * 2 * D * V
    return (4 if recompute else 3) * layers + 3 * logits
'''
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
Config = namedtuple("Config", NAMES)  # has these attributes, and nobody can change them


def cases(step_flops: Callable) -> None:
    """Formula against PyTorch's counter, on several models, batches and lengths."""
    # A larger one first: in it, hardly two mistakes give the same number.
    for sizes in (SHAPES[3], *SHAPES):
        for recompute in (False, True):
            look(step_flops, sizes, recompute, as_object=sizes[0] % 2 == 0)


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
        "Half of attention? It has two products, and a causal mask halves neither.": tokens
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


def look(step_flops: Callable, sizes: tuple[int, ...], recompute: bool, as_object: bool) -> None:
    """Judge one call, with a config that is a dict or an object."""
    *values, batch, length = sizes
    config = dict(zip(NAMES, values, strict=True))
    right = counted(config, batch, length, recompute)
    given = Config(**config) if as_object else config
    how = ", ".join(f"{name}={value}" for name, value in config.items())
    call = f"step_flops({how}; batch={batch}, length={length}, recompute={recompute})"
    arguments = (given, batch, length, True) if recompute else (given, batch, length)
    answer = called(call, step_flops, *arguments)
    if not (is_number(plain(answer)) or isinstance(answer, int)):
        said = f"{call} returned {kind(answer)}, expected a number"
        raise Wrong(said, "Return the number of FLOPs, and nothing else.")
    hint = "Which products did you count? Write down the ones of one layer, then the logits."
    expect(f"{call} returned", answer, right, mistakes(config, batch, length, recompute), hint)


STEP = "(4 if recompute else 3) * layers + 3 * logits"

WRONG = [
    ("one token", "tokens = batch * length", "tokens = 1", "How many tokens"),
    ("one sequence", "batch * length", "length", "How many are in the batch?"),
    ("forward only", STEP, "layers + logits", "Where is backward?"),
    ("no attention", " + 4 * length * D", "", "which hold no weights"),
    ("half of attention", "4 * length * D", "2 * length * D", "a causal mask halves neither"),
    ("one FLOP a term", STEP, f"({STEP}) // 2", "A multiplication *and* an addition"),
    ("no logits", " + 3 * logits", "", "makes the logits"),
    (
        "the embedding too",
        "3 * logits",
        "6 * logits",
        "Looking up an embedding is no product",
    ),
    (
        "recompute forgotten",
        "(4 if recompute else 3)",
        "3",
        "run forward once more",
    ),
    (
        "logits recomputed",
        "3 * logits",
        "(4 if recompute else 3) * logits",
        "The logits are not recomputed",
    ),
    ("three projections", "4 * D * D", "3 * D * D", "Query, key, value, output"),
    ("nan", "3 * logits", "3 * logits * float('nan')", "Which operation gives nan"),
    (
        "half of it for the mask",
        "4 * length * D",
        "2 * (length + 1) * D",
        "Which products did you count?",
    ),
    ("no number", "->", "lambda flops: 10**400", "beyond 1e308"),
    ("infinite", "->", "lambda flops: float('inf')", "returned inf"),
    ("a list", "->", "lambda flops: [flops]", "expected a number"),
    (
        "on the meta device",
        "->",
        "lambda flops: torch.tensor(flops).to('meta')",
        "a Tensor on the meta device",
    ),
]
RIGHT = [
    (
        "6P + 12LHQT, as a float",
        f"return {STEP}",
        "P = L * weights + D * V\n"
        "once = tokens * (6.0 * P + 12 * L * D * length)\n"
        "return once + (layers if recompute else 0)",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a tensor", "->", "torch.tensor"),
    ("a fraction", "->", "__import__('fractions').Fraction"),
]
