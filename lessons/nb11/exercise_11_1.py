"""11.1: merge two pieces of attention."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.checking.compare import judge, tensors
from course_utils.checking.findings import judging, observe, random_values

TITLE = "merge two pieces of attention"
PROVEN = (
    "pieces of 1 to 7 keys, scores up to 2000, rows that see nothing of a piece, and pieces that",
    "nobody sees: the attention over both and its log-sum-exp, in float64 and float32",
)
OURS = '''"""Join what two pieces of the keys contribute to the attention of the same queries."""

import torch
from torch import Tensor


def merge(out: Tensor, lse: Tensor, other_out: Tensor, other_lse: Tensor) -> tuple[Tensor, Tensor]:
    """The attention over both pieces: out (B, H, T, d) and its log-sum-exp lse (B, H, T).

    A piece that a query cannot see has lse = -inf, and its out is not used there.
    """
    total = torch.logaddexp(lse, other_lse)  # log(e^lse + e^other_lse), without overflow
    joined = torch.zeros_like(out)
    for part, its_lse in ((out, lse), (other_out, other_lse)):
        seen = (its_lse != -torch.inf).unsqueeze(-1)
        share = (its_lse - total).exp().unsqueeze(-1)  # between 0 and 1
        joined = joined + torch.where(seen, part * share, 0)
    return joined, total
'''
SEES = {  # the rows that do not see a piece, for each piece
    "": (slice(0), slice(0)),
    ", row 0 sees nothing of the first": (slice(1), slice(0)),
    ", row 1 sees nothing of the second": (slice(0), slice(1, 2)),
    ", nobody sees the first": (slice(None), slice(0)),
    ", nobody sees the second": (slice(0), slice(None)),
}


def cases(merge: Callable) -> None:
    """Outputs and log-sum-exps of pieces of several sizes, large scores, and nothing to see."""
    for seed, keys in enumerate(((1, 1), (2, 5), (7, 3))):
        for size in (1.0, 300.0, 1000.0):
            for case in SEES:
                for dtype in (torch.float64, torch.float32):
                    with judging():
                        look(merge, case, keys, size, dtype, 10 * seed)


def look(
    merge: Callable, case: str, keys: tuple[int, int], size: float, dtype: torch.dtype, seed: int
) -> None:
    """One merge; `case` says what some rows do not see."""
    scores = size * random_values(seed, 2, 2, 3, sum(keys), dtype=dtype)
    values = random_values(seed + 1, 2, 2, sum(keys), 4, dtype=dtype)
    first, second = SEES[case]
    scores[:, :, first, : keys[0]] = -torch.inf
    scores[:, :, second, keys[0] :] = -torch.inf
    pieces = zip(scores.split(keys, -1), values.split(keys, -2), strict=True)
    (out, lse), (other_out, other_lse) = (attention(*piece) for piece in pieces)
    whole, total = attention(scores, values)
    names = ("`out`", "`lse`", "`other_out`", "`other_lse`")
    found = observe(merge, out, lse, other_out, other_lse, names=names)
    here = f"{keys[0]} + {keys[1]} keys, scores about {size:g}{case}"
    loose = 1e-9 if dtype == torch.float64 else 2e-4
    hint = "Return two tensors: the merged out (B, H, T, d), and the merged lse (B, H, T)."
    got, got_lse = tensors(here, found, 2, hint)
    mistakes = {
        "Adding counts every piece in full. Each piece's softmax already adds up to 1.": out
        + other_out,
        "A mean gives both pieces equal weight. Which piece has the larger sum of exponentials?": (
            out + other_out
        )
        / 2,
        "You have the two weights the wrong way round.": out
        * (other_lse - total).exp().unsqueeze(-1)
        + other_out * (lse - total).exp().unsqueeze(-1),
        "Those weights do not add up to 1. Divide by the sum of both.": out
        * lse.exp().unsqueeze(-1)
        + other_out * other_lse.exp().unsqueeze(-1),
        "That is the lse. Return the merged out first, and the lse after it.": total,
    }
    hint = "The weight of a piece is e^lse, divided by the sum of both e^lse."
    judge(f"{here}: out", got, whole, mistakes, hint, dtype=dtype, tolerance=loose)
    mistakes = {
        "lse is a logarithm of a sum: you can't add two logarithms for that.": lse + other_lse,
        "That is the larger of the two, not the logarithm of the sum.": torch.maximum(
            lse, other_lse
        ),
        "Is that the lse of one piece alone?": lse,
    }
    hint = "The lse over both pieces is log(e^lse + e^other_lse)."
    judge(f"{here}: lse", got_lse, total, mistakes, hint, dtype=dtype, tolerance=loose)


def attention(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Out (B, H, T, d) and lse (B, H, T); out is 0 where a row sees nothing."""
    lse = scores.logsumexp(-1)
    seen = lse.isfinite().unsqueeze(-1)
    weights = (scores - lse.unsqueeze(-1).masked_fill(~seen, 0)).exp()
    return weights.masked_fill(~seen, 0) @ values, lse


SHARE = "(its_lse - total).exp().unsqueeze(-1)"
TOTAL = "total = torch.logaddexp(lse, other_lse)"
JOINED = "return joined, total"

WRONG = [
    ("added", SHARE, "1", "Adding counts every piece in full"),
    ("the mean", SHARE, "0.5", "equal weight"),
    (
        "weights swapped",
        "((out, lse), (other_out, other_lse))",
        "((out, other_lse), (other_out, lse))",
        "the wrong way round",
    ),
    ("weights not divided", "(its_lse - total)", "its_lse", "do not add up to 1"),
    (
        "exp of large numbers",
        TOTAL,
        "total = (lse.exp() + other_lse.exp()).log()",
        SHARE,
        "(its_lse.exp() / total.exp()).unsqueeze(-1)",
        "operation gives nan",
    ),
    (
        "logarithms added",
        JOINED,
        "return joined, lse + other_lse",
        "you can't add two logarithms",
    ),
    (
        "the larger lse",
        JOINED,
        "return joined, torch.maximum(lse, other_lse)",
        "the larger of the two",
    ),
    ("one lse", JOINED, "return joined, lse", "of one piece alone"),
    ("one tensor", JOINED, "return joined", "two tensors"),
    ("its arguments written", "part * share", "part.mul_(share)", "changed `out`"),
    ("float32", JOINED, "return joined.float(), total", "out"),
    ("lse first", JOINED, "return total, joined", "Return the merged out first"),
    (
        "one buffer for all calls",
        JOINED,
        "key = str((joined.shape, joined.dtype))\n"
        "kept = merge.__dict__.setdefault(key, torch.empty_like(joined))\n"
        "return kept.copy_(joined), total",
        "in the same memory",
    ),
    (
        "the piece that nobody sees",
        TOTAL,
        f"if not other_lse.isfinite().any():\n    return other_out, other_lse\n{TOTAL}",
        "nobody sees the second: out",
    ),
]
RIGHT = [
    (
        "hands back the only piece that anybody sees",
        TOTAL,
        "if not other_lse.isfinite().any():\n    return out, lse\n"
        f"if not lse.isfinite().any():\n    return other_out, other_lse\n{TOTAL}",
    ),
    (
        "with the larger lse taken off",
        TOTAL,
        "top = torch.maximum(lse, other_lse)\n"
        "total = top + ((lse - top).exp() + (other_lse - top).exp()).log()",
    ),
    (
        "a named tuple",
        "->",
        "lambda pair: __import__('collections').namedtuple('Piece', 'out lse')(*pair)",
    ),
]
