"""Calls the student's merge on two pieces of attention, and compares with attention over both."""

import torch
from torch import Tensor

from course_utils.checking.compare import judge, tensors
from course_utils.checking.findings import judging, observe, random_values

from exercise_11_1 import merge


def attention(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Out (B, H, T, d) and lse (B, H, T); out is 0 where a row sees nothing."""
    lse = scores.logsumexp(-1)
    seen = lse.isfinite().unsqueeze(-1)
    weights = (scores - lse.unsqueeze(-1).masked_fill(~seen, 0)).exp()
    return weights.masked_fill(~seen, 0) @ values, lse


def look(case: str, keys: tuple[int, int], size: float, dtype: torch.dtype, seed: int) -> None:
    """One merge; `case` says what some rows do not see."""
    scores = size * random_values(seed, 2, 2, 3, sum(keys), dtype=dtype)
    values = random_values(seed + 1, 2, 2, sum(keys), 4, dtype=dtype)
    if "first" in case:
        scores[:, :, 0, : keys[0]] = -torch.inf
    if "second" in case:
        scores[:, :, 1, keys[0] :] = -torch.inf
    pieces = zip(scores.split(keys, -1), values.split(keys, -2), strict=True)
    (out, lse), (other_out, other_lse) = (attention(*piece) for piece in pieces)
    whole, total = attention(scores, values)
    names = ("`out`", "`lse`", "`other_out`", "`other_lse`")
    found = observe(merge, out, lse, other_out, other_lse, names=names)
    here = f"{keys[0]} + {keys[1]} keys, scores about {size:g}{case}"
    loose = 1e-9 if dtype == torch.float64 else 2e-4
    with judging():
        hint = "Return two tensors: the merged out (B, H, T, d), and the merged lse (B, H, T)."
        first, second = tensors(here, found, 2, hint)
        mistakes = {
            "Adding counts every piece in full. Each piece's softmax already adds up to 1.": out
            + other_out,
            "A mean gives both pieces equal weight. Which piece has the larger sum of "
            "exponentials?": (out + other_out) / 2,
            "You have the two weights the wrong way round.": whole.new_zeros(())
            + out * (other_lse - total).exp().unsqueeze(-1)
            + other_out * (lse - total).exp().unsqueeze(-1),
            "Those weights do not add up to 1. Divide by the sum of both.": out
            * lse.exp().unsqueeze(-1)
            + other_out * other_lse.exp().unsqueeze(-1),
        }
        hint = "The weight of a piece is e^lse, divided by the sum of both e^lse."
        judge(f"{here}: out", first, whole, mistakes, hint, dtype=dtype, tolerance=loose)
        mistakes = {
            "lse is a logarithm of a sum: you can't add two logarithms for that.": lse + other_lse,
            "That is the larger of the two, not the logarithm of the sum.": torch.maximum(
                lse, other_lse
            ),
            "Is that the lse of one piece alone?": lse,
        }
        hint = "The lse over both pieces is log(e^lse + e^other_lse)."
        judge(f"{here}: lse", second, total, mistakes, hint, dtype=dtype, tolerance=loose)


SEES = ("", ", row 0 sees nothing of the first", ", row 1 sees nothing of the second")
for seed, keys in enumerate(((1, 1), (2, 5), (7, 3))):
    for size in (1.0, 300.0, 1000.0):
        for case in SEES:
            for dtype in (torch.float64, torch.float32):
                look(case, keys, size, dtype, 10 * seed)
