"""01.5: the two halves of a layer's backward pass."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from course_utils.checking.compare import Wrong, judge
from course_utils.checking.findings import observe, random_values

TITLE = "the two halves of a layer's backward pass"
PROVEN = (
    "both gradients of x @ w, for rows and for batches of rows, in two dtypes",
    "each half computes one matrix product, and not the other half's",
)
WITHOUT = ("autograd", "grad", "backward", "vjp", "jvp", "jacrev", "jacfwd", "jacobian", "tape")
OURS = '''\
"""The two products in the backward pass of y = x @ w, one at a time."""

from torch import Tensor


def input_gradient(dL_dy: Tensor, w: Tensor) -> Tensor:
    """(..., m), (k, m) -> (..., k)."""
    return dL_dy @ w.mT


def weight_gradient(dL_dy: Tensor, x: Tensor) -> Tensor:
    """(..., m), (..., k) -> (k, m): every row of x used all of w, so the parts are added."""
    return x.reshape(-1, x.shape[-1]).mT @ dL_dy.reshape(-1, dL_dy.shape[-1])
'''
SHAPES = (  # the axes before the last one, k, m
    *(((4,), 3, 2), ((2, 4), 3, 5), ((5,), 3, 3), ((2, 3, 2), 4, 3), ((1,), 2, 3)),
)


def cases(input_gradient: Callable, weight_gradient: Callable) -> None:
    """Both halves beside PyTorch's own."""
    for rows, k, m in SHAPES:
        for dtype in (torch.float64, torch.float32):
            look(input_gradient, weight_gradient, rows, k, m, dtype)


def look(
    input_gradient: Callable,
    weight_gradient: Callable,
    rows: tuple[int, ...],
    k: int,
    m: int,
    dtype: torch.dtype,
) -> None:
    """One shape."""
    x, w = random_values(1, *rows, k, dtype=dtype), random_values(2, k, m, dtype=dtype)
    arriving = random_values(3, *rows, m, dtype=dtype)
    leaves = [each.clone().requires_grad_() for each in (x, w)]
    dx, dw = torch.autograd.grad(leaves[0] @ leaves[1], leaves, arriving)
    shapes = f"x {tuple(x.shape)}, w {tuple(w.shape)}"
    flops = 2 * x.numel() * m

    mistakes = {"You get y itself. Which way round does the gradient go?": x @ w}
    if k == m:
        mistakes["k equals m here, so no shape complains. Is w transposed?"] = arriving @ w
    hint = "How much does y[..., j] move per unit of x[..., i]? Add that up over j."
    found = counted(f"{shapes}: input_gradient", input_gradient, flops, (arriving, w), "w")
    judge(f"{shapes}: input_gradient", found, dx, mistakes, hint, dtype=dtype)

    flat_x, flat_g = x.reshape(-1, k), arriving.reshape(-1, m)
    count = flat_x.shape[0]
    mistakes = [("Is that the gradient of w, or of its transpose?", dw.mT)]
    if len(rows) > 1:
        batches = x.mT @ arriving
        mistakes += [
            ("Every batch of rows used the same w. What happens to the parts?", batches),
            ("That is the mean over the batches. A sum is asked for.", batches.mean(0)),
            ("That is the last batch alone. What about the others?", batches[-1]),
        ]
    mistakes += [
        ("The loss has its mean already. Add up what all rows give, and divide by nothing.", v)
        for v in (dw / count, dw / rows[0], dw / rows[-1])
    ]
    mistakes += [
        ("That is one row's part. What do the other rows add?", row(flat_x, flat_g, number))
        for number in (0, -1)
    ]
    hint = "w[i, j] was used in every row: once as x[..., i] times it, in y[..., j]. Add the parts."
    found = counted(f"{shapes}: weight_gradient", weight_gradient, flops, (arriving, x), "x")
    judge(f"{shapes}: weight_gradient", found, dw, mistakes, hint, dtype=dtype)


def row(x: Tensor, arriving: Tensor, number: int) -> Tensor:
    """What one row gives."""
    return x[number][:, None] * arriving[number]


def counted(where: str, function: Callable, flops: int, given: tuple, second: str) -> dict:
    """What `observe` saw; refuses an answer that computes more than its one product."""
    with FlopCounterMode(display=False) as counter:
        answer = function(*(each.clone() for each in given))
    if counter.get_total_flops() > flops and isinstance(answer, Tensor):
        times = counter.get_total_flops() / flops
        hint = "The point is to do one product now and the other later. Which one is asked for?"
        raise Wrong(f"{where} computed {times:g} times the work of one matrix product", hint)
    return observe(function, *given, names=("dL_dy", second))


INPUT = "return dL_dy @ w.mT"
WEIGHT = "return x.reshape(-1, x.shape[-1]).mT @ dL_dy.reshape(-1, dL_dy.shape[-1])"

WRONG = [
    ("w as it is", INPUT, "return dL_dy @ (w if w.shape[0] == w.shape[1] else w.mT)", "transposed"),
    (
        "the batches kept apart",
        WEIGHT,
        "return x.mT @ dL_dy",
        "Every batch of rows used the same w",
    ),
    (
        "the mean over the rows",
        WEIGHT,
        f"{WEIGHT} / x[..., 0].numel()",
        "divide by nothing",
    ),
    (
        "the mean over the batches",
        WEIGHT,
        "made = x.mT @ dL_dy\nwhile made.dim() > 2:\n    made = made.mean(0)\nreturn made",
        "That is the mean over the batches",
    ),
    (
        "the last batch",
        WEIGHT,
        "made = x.mT @ dL_dy\nwhile made.dim() > 2:\n    made = made[-1]\nreturn made",
        "the last batch alone",
    ),
    (
        "transposed",
        WEIGHT,
        f"return ({WEIGHT.removeprefix('return ')}).mT",
        "of its transpose",
    ),
    (
        "both products in one half",
        INPUT,
        "rows = dL_dy.reshape(-1, dL_dy.shape[-1])\nrows.mT @ rows @ w.mT\n" + INPUT,
        "one product now and the other later",
    ),
    ("the gradient is used up", INPUT, "made = dL_dy @ w.mT\ndL_dy.zero_()\nreturn made", "dL_dy"),
    ("always float32", "->", "lambda made: made.float()", "the last digits are gone"),
    ("nothing returned", INPUT, "dL_dy @ w.mT", "None"),
]
RIGHT = [
    (
        "with einsum",
        INPUT,
        'import torch\nreturn torch.einsum("...m,km->...k", dL_dy, w)',
        WEIGHT,
        'import torch\nreturn torch.einsum("...k,...m->km", x, dL_dy)',
    ),
    (
        "batches apart, then added",
        WEIGHT,
        "made = x.mT @ dL_dy\nreturn made.flatten(0, -3).sum(0) if made.dim() > 2 else made",
    ),
    (
        "tensordot",
        WEIGHT,
        "n = x.dim() - 1\nimport torch\n"
        "return torch.tensordot(x, dL_dy, dims=(list(range(n)), list(range(n))))",
    ),
]
