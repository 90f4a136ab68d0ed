"""Calls the student's low_rank on random matrices, and judges mean, what is kept, q, the bytes."""

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
from course_utils.worker import init

from exercise_10_2 import low_rank


def look(case: str, m: int, n: int, k: int, seed: int, dtype, group, ranks: list) -> None:
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


def thin(case: str, dtype: torch.dtype, column: torch.Tensor) -> None:
    """A matrix with fewer directions than q has columns: the mean is exact, nothing is kept."""
    rows = [column.to(dtype) * random_values(r, 1, 3, dtype=dtype) for r in everyone]
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


init()
everyone = list(range(dist.get_world_size()))
for number, (m, n, k) in enumerate([(2, 3, 1), (4, 6, 2), (7, 5, 3), (3, 3, 2), (2, 5, 1)]):
    for dtype in (torch.float64, torch.float32):
        case = f"a matrix of {m} x {n}, k = {k}, {name_of(dtype)}"
        look(case, m, n, k, 200 * number, dtype, None, everyone)
for dtype in (torch.float64, torch.float32):
    thin("a matrix of zeros, k = 2", dtype, torch.zeros(4, 1))
    thin("a matrix with one direction, k = 2", dtype, torch.tensor([[2.0], [1.0], [0.0], [-2.0]]))
if mine := pair():
    look("a group of two", 3, 4, 2, 3000, torch.float64, *mine)
