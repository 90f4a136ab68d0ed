"""Notebook 09, pipeline parallel: loss scale, 1F1B, clipping across stages, a split backward."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.exercises.calls import called
from course_utils.exercises.checking import exercise, probe
from course_utils.exercises.compare import Wrong

BATCHES = ((8, 4), (8, 1), (6, 2), (7, 3), (9, 4), (5, 5))  # rows, micro-batches
RANKS = (2, 3, 4, 1)
TORCHS = ("clip_grad_norm_", "clip_grads_with_norm_", "get_total_norm")


@exercise("09.1", "fix the loss scale")
def check_09_1(accumulate: Callable) -> list[str]:
    """Gradients, the loss and the model's inputs, also for micro-batches of unequal size."""
    for dtype in (torch.float64, torch.float32):
        for loss in (mse_loss, cross_entropy):
            for seed, (rows, m) in enumerate(BATCHES):
                _check_accumulated(accumulate, loss, dtype, rows, m, seed)
    return [
        "5 to 9 rows in 1 to 5 micro-batches, equal and unequal, two losses, two dtypes:",
        "gradient and mean loss of the whole batch, with no more rows at once than a micro-batch",
    ]


def _check_accumulated(
    accumulate: Callable, loss: Callable, dtype: torch.dtype, rows: int, m: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)).to(dtype)
    model[0].bias.requires_grad_(False)
    inputs = torch.randn(rows, 3, dtype=dtype, generator=generator)
    targets = torch.randn(rows, 4, dtype=dtype, generator=generator)
    if loss is cross_entropy:
        targets = torch.randint(4, (rows,), generator=generator)
    whole, given = copy.deepcopy(model), []
    (right := loss(whole(inputs), targets)).backward()
    model.register_forward_pre_hook(lambda _, x: given.append(len(x[0])))
    before = [tensor.clone() for tensor in (inputs, targets, *model.parameters())]
    call = f"{rows} rows in {m} micro-batch{'es' * (m > 1)} ({loss.__name__}, {dtype})"
    answer = called(call, accumulate, model, loss, inputs, targets, m)
    after = (inputs, targets, *model.parameters())
    if not all(map(torch.equal, before, after)):
        hint = "Only `.grad` should change. Which line writes to its arguments?"
        raise Wrong(f"{call}: inputs, targets or parameters have changed", hint)
    if max(given, default=0) > math.ceil(rows / m) or sum(given) < rows:
        raise Wrong(
            f"{call}: the model was given {given} rows",
            "Pass every row once, and never more rows than a micro-batch has.",
        )
    _check_gradients(call, model, whole, m, rows)
    if not isinstance(answer, (float, int, Tensor)) or not math.isclose(
        float(answer), right.item(), rel_tol=1e-5
    ):
        raise Wrong(
            f"{call}: returned {_short(answer)}, expected {right.item():.6g}",
            "Return the mean over all rows. How much weight does each part get?",
        )


def _check_gradients(call: str, model: nn.Module, whole: nn.Module, m: int, rows: int) -> None:
    pairs = zip(model.named_parameters(), whole.parameters(), strict=True)
    for (name, ours), right in pairs:
        if right.grad is None:
            continue
        if ours.grad is None:
            raise Wrong(f"{call}: {name}.grad is None", "Do you call backward()?")
        ratio = ((ours.grad * right.grad).sum() / right.grad.square().sum()).item()
        if not torch.allclose(ours.grad, right.grad, rtol=1e-4, atol=1e-6):
            hint = f"Yours is {ratio:.2f} times the right one, and there are {m} micro-batches."
            if rows % m:
                sizes = [rows // m + (i < rows % m) for i in range(m)]
                hint += f" Here their sizes are {sizes}. How much weight does each of them get?"
            raise Wrong(f"{call}: the gradient of {name} is not that of the whole batch", hint)


@exercise("09.2", "the order of 1F1B", file="exercise_09_2.py")
def check_09_2() -> list[str]:
    """The list of every stage for 1 to 5 stages and 1 to 9 micro-batches."""
    for found in sorted(probe("probe_09_2.py", 1), key=lambda found: (found["p"], found["m"])):
        _check_order(found["stage"], found["p"], found["m"], found["order"], found["kind"])
    return ["every list is right: 1 to 5 stages, 1 to 9 micro-batches, also fewer than the warm-up"]


def _check_order(stage: int, p: int, m: int, got: list | None, kind: str) -> None:
    warm_up = min(p - 1 - stage, m)
    expected = [f"F{i}" for i in range(warm_up)]
    for i in range(m):
        expected += [f"F{warm_up + i}", f"B{i}"] if warm_up + i < m else [f"B{i}"]
    call = f"one_f_one_b(stage={stage}, stages={p}, microbatches={m})"
    if got is None:
        raise Wrong(f"{call} returned a {kind}, expected a list of Action(kind, microbatch)")
    if got == expected:
        return
    behind = p - 1 - stage
    hint = f"Behind this stage there are {behind} of {p} stages. How many micro-batches fit there?"
    first = next((n for n, action in enumerate(got) if action.startswith("B")), len(got))
    if set(got) - set(expected):
        hint = f"There are {m} micro-batches, numbered from 0. Is your warm-up longer than that?"
    elif set(expected) - set(got):
        hint = "Every micro-batch needs a forward and a backward. Which one is missing?"
    elif first == warm_up + (warm_up < m):
        hint = "The warm-up is right. After it, alternate: one forward, one backward."
    raise Wrong(f"{call} returned\n{' '.join(got)}, expected\n{' '.join(expected)}", hint)


@exercise("09.3", "clip across stages", file="exercise_09_3.py", without=TORCHS)
def check_09_3() -> list[str]:
    """Norms, gradients and bytes on 1 to 4 ranks, over all ranks and over pairs."""
    for ranks in RANKS:
        for found in probe("probe_09_3.py", ranks, timeout=60):
            _check_clipped(ranks, found)
    return [
        "1 to 4 ranks, and pairs of 4; float64, float32, float16; stages without a gradient:",
        "one norm, one factor, small gradients unchanged; each rank sent a single number",
    ]


def _check_clipped(ranks: int, found: dict[str, Any]) -> None:
    where = f"{ranks} rank{'s' * (ranks > 1)}, {found['case']}: rank {found['rank']}"
    norm, limit, own = found["norm"], found["limit"], found["own"]
    if found["answer"] is None:
        raise Wrong(f"{where} returned a {found['kind']}, expected a number")
    if not math.isclose(found["answer"], norm, rel_tol=1e-3 if "float16" in where else 1e-5):
        hints = {
            "That is the norm of this rank alone. How does it learn about the others?": own,
            "You can't add norms. What can you add?": found["added"],
            "That is the square of the norm.": norm**2,
            "Is that a mean over the ranks? The norm needs their sum.": found["mean"],
            "Is that the norm before clipping?": limit,
        }
        hint = next(
            (h for h, v in hints.items() if math.isclose(found["answer"], v, rel_tol=1e-4)),
            "It is the square root of the sum of all squares, over all ranks. In which dtype?",
        )
        raise Wrong(f"{where} returned {found['answer']:.6g}, expected {norm:.6g}", hint)
    if found["touched"]:
        raise Wrong(f"{where}: a parameter has changed", "Clipping changes `.grad`, and only that.")
    if not found["in_place"]:
        raise Wrong(f"{where}: `.grad` is another tensor now", "Scale it in place.")
    if not found["right"]:
        hint = f"The norm is {norm:.3g} and the limit {limit:.3g}. By which factor?"
        if norm <= limit:
            hint = f"The norm is {norm:.3g}, below the limit {limit:.3g}: there is nothing to clip."
        elif math.isclose(found["ratio"], min(1.0, limit / (own or 1)), rel_tol=1e-3):
            hint = "That is the factor for this rank's own norm. Use the norm over all ranks."
        message = (
            f"{where}: gradients scaled by {found['ratio']:.4f}, expected {found['factor']:.4f}"
        )
        raise Wrong(message, hint)
    if found["bytes"] > 8 * max(2, ranks):
        raise Wrong(
            f"{where} moved {found['bytes']} bytes",
            "What do the others need to know about your gradients? Only one number.",
        )


@exercise("09.4", "split a linear layer's backward", file="exercise_09_4.py")
def check_09_4() -> list[str]:
    """What backward computes at once, what it puts off, and what it adds to `.grad`."""
    probe("probe_09_4.py", 1)
    return [
        "1 to 4 dimensions, with and without bias, frozen or not, float32 and float64:",
        "B: one product, for the input's gradient; W: the weights' gradients, added to `.grad`",
    ]


def _short(answer: Any) -> str:
    number = isinstance(answer, (float, int)) or (torch.is_tensor(answer) and answer.numel() == 1)
    return f"{float(answer):.6g}" if number else f"a {type(answer).__name__}"
