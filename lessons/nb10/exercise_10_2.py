"""10.2: two thin matrices."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from course_utils.checking.compare import (
    Wrong,
    article,
    expect,
    expect_calls,
    judge,
    name_of,
    tensors,
)
from course_utils.checking.findings import judging, observe, pair, random_values, where

TITLE = "two thin matrices"
PROVEN = (
    "1 to 4 ranks and a group of two, float32 and float64: p times the mean q, and the next q",
    "each rank keeps what its own two matrices left out",
    "two all-reduces, of p and of q",
)
RANKS = (2, 3, 4, 1)
WITHOUT = (
    "PowerSGDState",
    "powerSGD_hook",
    "batched_powerSGD_hook",
    "svd_lowrank",
    "pca_lowrank",
)
OURS = '''"""PowerSGD's step: a gradient as two thin matrices (Vogels et al. 2019)."""

import torch
import torch.distributed as dist
from torch import Tensor


def low_rank(
    matrix: Tensor, kept: Tensor, q: Tensor, group: dist.ProcessGroup | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean over the ranks, approximately, (m, n); what this rank keeps; and the next q.

    Args:
        matrix: this rank's gradient, (m, n).
        kept: what it kept the last time, (m, n).
        q: the q returned the last time, (n, k), the same on every rank.
        group: the ranks.
    """
    whole = matrix + kept
    p = whole @ q  # (m, n) @ (n, k) -> (m, k)
    dist.all_reduce(p, group=group)
    p = torch.linalg.qr(p).Q  # k directions, orthonormal, the same on every rank
    mine = whole.T @ p  # (n, m) @ (m, k) -> (n, k)
    q = mine / dist.get_world_size(group)
    dist.all_reduce(q, group=group)
    return p @ q.T, whole - p @ mine.T, q
'''


def cases(low_rank: Callable) -> None:
    """Random matrices, of all ranks and of a group; and matrices of fewer directions than q has."""
    everyone = list(range(dist.get_world_size()))
    shapes = [(2, 3, 1), (4, 6, 2), (7, 5, 3), (3, 3, 2), (2, 5, 1)]
    for number, (m, n, k) in enumerate(shapes):
        for dtype in (torch.float64, torch.float32):
            case = f"a matrix of {m} x {n}, k = {k}, {name_of(dtype)}"
            look(low_rank, case, m, n, k, 200 * number, dtype, None, everyone)
    one = torch.tensor([[2.0], [1.0], [0.0], [-2.0]])
    for dtype in (torch.float64, torch.float32):
        thin(low_rank, "a matrix of zeros, k = 2", dtype, torch.zeros(4, 1))
        thin(low_rank, "a matrix with one direction, k = 2", dtype, one)
    if mine := pair():
        look(low_rank, "a group of two", 3, 4, 2, 3000, torch.float64, *mine)


def look(
    low_rank: Callable, case: str, m: int, n: int, k: int, seed: int, dtype, group, ranks: list
) -> None:
    """One call, of the ranks of a group."""
    here, me = where(case), dist.get_rank()
    q = random_values(seed + 99, n, k, dtype=dtype)
    matrices = {r: random_values(seed + r, m, n, dtype=dtype) for r in ranks}
    kept = {r: random_values(seed + 50 + r, m, n, dtype=dtype) for r in ranks}
    wholes = {r: matrices[r] + kept[r] for r in ranks}
    p = torch.linalg.qr(sum(whole @ q for whole in wholes.values())).Q
    own = {r: whole.T @ p for r, whole in wholes.items()}
    next_q = sum(own.values()) / len(ranks)
    mean = p @ next_q.T
    arguments = (matrices[me].clone(), kept[me].clone(), q.clone())
    found = observe(partial(low_rank, group=group), *arguments, names=("`matrix`", "`kept`", "`q`"))
    precision = {"dtype": dtype, "tolerance": 1e-4 if dtype == torch.float32 else None}
    with judging():
        hint = "Three tensors: the mean over the ranks, what this rank keeps, and the next q."
        first, second, third = tensors(here, found, 3, hint)
        rough = sum(whole @ q for whole in wholes.values())
        own_p = {r: torch.linalg.qr(whole @ q).Q for r, whole in wholes.items()}
        own_p_q = sum(whole.T @ own_p[r] for r, whole in wholes.items()) / len(ranks)
        unfed = torch.linalg.qr(sum(matrix @ q for matrix in matrices.values())).Q
        crooked = rough @ rough.T @ sum(wholes.values()) / len(ranks)
        unfed = unfed @ unfed.T @ sum(matrices.values()) / len(ranks)
        early = "That is this rank's own p. All-reduce it before you make it orthonormal."
        mistakes = [
            ("That is the sum over the ranks. Which of p and q becomes a mean?", mean * len(ranks)),
            ("How many ranks are in the group?", mean * len(ranks) / dist.get_world_size()),
            ("Are the columns of p orthonormal? torch.linalg.qr makes them so.", crooked),
            (early, own_p[me] @ own_p_q.T),
            ("You left out what was kept. Add it to the matrix first.", unfed),
            ("That is p times this rank's own q. How does it learn the others'?", p @ own[me].T),
        ]
        hint = "p = M q, summed and made orthonormal; q = transposed M times p, the mean."
        judge(f"{here} the mean:", first, mean, mistakes, hint, **precision)
        mine = p @ own[me].T
        mistakes = [
            ("Keep what *this* rank's own q left out, not the mean q.", wholes[me] - mean),
            ("You forgot what was kept before.", matrices[me] - mine),
            ("Subtract what was sent.", wholes[me]),
            ("You keep nothing. Where does the rest go?", torch.zeros_like(mine)),
            ("That is what was sent. What was *not* sent?", mine),
        ]
        hint = "Keep the whole matrix minus p times this rank's own q."
        judge(f"{here} what is kept:", second, wholes[me] - mine, mistakes, hint, **precision)
        if third["kind"] != "Tensor":
            said = f"{here} q is {article(third['kind'])}, expected a Tensor"
            raise Wrong(said, "The third is the next q: an ordinary tensor (n, k).")
        given = torch.tensor(third["answer"], dtype=torch.float64)
        if given.shape != q.shape:
            hint = "q has the shape (n, k), before and after."
            raise Wrong(f"{here} q has shape {tuple(given.shape)}, expected {(n, k)}", hint)
        # Another orthonormal p of the same directions is as good: q q^T is the same for all.
        square = next_q.double() @ next_q.double().T
        mistakes = [
            ("Return the mean of all ranks' q, the same on every rank.", own[me].double()),
            ("That is the sum over the ranks.", next_q.double() * len(ranks)),
            ("Return the new q, not the one that came in.", q.double()),
        ]
        mistakes = [(question, v @ v.T) for question, v in mistakes]
        hint = "The next q is the mean over the ranks of transposed M times p."
        third["answer"] = (given @ given.T).tolist()
        where_q = f"{here} q times its transpose:"
        judge(where_q, third, square, mistakes, hint, **precision)
    with judging():
        width = q.element_size()
        wanted = [["all_reduce", m * k * width], ["all_reduce", n * k * width]]
        hint = "Send only p, (m, k), and q, (n, k), each once."
        expect_calls(here, found["calls"], [wanted, *[[]] * (len(ranks) == 1)], hint)


def thin(low_rank: Callable, case: str, dtype: torch.dtype, column: torch.Tensor) -> None:
    """A matrix with fewer directions than q has columns: the mean is exact, nothing is kept."""
    rows = [
        column.to(dtype) * random_values(r, 1, 3, dtype=dtype) for r in range(dist.get_world_size())
    ]
    mine, q = rows[dist.get_rank()], random_values(7, 3, 2, dtype=dtype)
    answer = low_rank(mine.clone(), torch.zeros_like(mine), q)
    with judging():
        for what, got, right in (
            ("the mean", answer[0], sum(rows) / len(rows)),
            ("what is kept", answer[1], torch.zeros_like(mine)),
        ):
            if not torch.allclose(got, right, atol=1e-5):
                hint = "Is a column of p 0 / 0? What is left of the second column?"
                expect(f"{where(case)} {what}:", got, right, [(hint, got)])
        if not answer[2].isfinite().all():
            raise Wrong(f"{where(case)} the next q is not finite", "Is a column of p 0 / 0?")


SUM_OF_P = "dist.all_reduce(p, group=group)"
SUM_OF_Q = "dist.all_reduce(q, group=group)"
MEAN_OF_Q = "mine / dist.get_world_size(group)"
ORTHONORMAL = "p = torch.linalg.qr(p).Q"

WRONG = [
    ("not orthonormal", ORTHONORMAL, "pass", "Are the columns of p orthonormal?"),
    ("its own p", SUM_OF_P, "pass", "own p"),
    ("a sum of q", MEAN_OF_Q, "mine.clone()", "Which of p and q becomes a mean?"),
    ("its own q", "return p @ q.T", "return p @ mine.T", "this rank's own q"),
    ("keeps by the mean q", "whole - p @ mine.T", "whole - p @ q.T", "own q left out"),
    ("forgot what was kept", "matrix + kept", "matrix", "You left out what was kept"),
    (
        "keeps nothing",
        "whole - p @ mine.T",
        "torch.zeros_like(whole)",
        "Where does the rest go?",
    ),
    ("returns its own q", "mine.T, q", "mine.T, mine", "the same on every rank"),
    (
        "all-reduces the matrix",
        "whole = matrix + kept",
        "whole = matrix + kept\ndist.all_reduce(matrix.clone(), group=group)",
        "Send only p, (m, k), and q, (n, k)",
    ),
    ("changes the matrix", "matrix + kept", "matrix.add_(kept)", "changed `matrix`"),
    ("the whole world", SUM_OF_P, "dist.all_reduce(p)", "a group of two"),
    ("q as a list", "mine.T, q", "mine.T, q.tolist()", "expected a Tensor"),
    (
        "Gram-Schmidt without a guard",
        ORTHONORMAL,
        "p[:, 0] /= p[:, 0].norm()\n"
        "for i in range(1, p.shape[1]):\n"
        "    p[:, i] -= p[:, :i] @ (p[:, :i].T @ p[:, i])\n"
        "    p[:, i] /= p[:, i].norm()",
        "Is a column of p 0 / 0?",
    ),
    (
        "one buffer for all calls",
        "return p @ q.T",
        "buffers = low_rank.__dict__.setdefault('buffers', {})\n"
        "mean = buffers.setdefault((whole.shape, q.dtype), whole.clone()).copy_(p @ q.T)\n"
        "return mean",
        "two calls gave answers in the same memory",
    ),
]
RIGHT = [
    ("the other sign of p", "torch.linalg.qr(p).Q", "-torch.linalg.qr(p).Q"),
    (
        "divides after the sum",
        MEAN_OF_Q,
        "mine.clone()",
        SUM_OF_Q,
        f"{SUM_OF_Q}\nq = q / dist.get_world_size(group)",
    ),
]
