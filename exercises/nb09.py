"""Notebook 09, pipeline parallel: loss scale, 1F1B, clipping across stages, a split backward."""

import copy
import math
import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.checking.calls import called
from course_utils.checking.compare import NAN, Wrong, expect, plain
from course_utils.checking.failures import of_backward
from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise

BATCHES = ((8, 4), (8, 1), (6, 2), (7, 3), (9, 4), (5, 5))  # rows, micro-batches
TORCHS = ("clip_grad_norm_", "clip_grads_with_norm_", "get_total_norm")


class _Saved:
    """A tensor that autograd has saved; it goes when autograd lets go of it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


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
    if rows == m:  # what an earlier backward has left: add to it
        for parameter in [*model.parameters(), *whole.parameters()]:
            if parameter.requires_grad:
                parameter.grad = torch.ones_like(parameter)
    (right := loss(whole(inputs), targets)).backward()
    saved: weakref.WeakSet[_Saved] = weakref.WeakSet()
    alive: list[int] = []  # what autograd still holds at the beginning of each forward pass

    def note(_: nn.Module, x: tuple[Tensor, ...]) -> None:
        given.append(len(x[0]))
        alive.append(len(saved))

    def keep(tensor: Tensor) -> _Saved:
        saved.add(each := _Saved(tensor))
        return each

    model.register_forward_pre_hook(note)
    before = [parameter.clone() for parameter in model.parameters()]
    call = f"{rows} rows in {m} micro-batch{'es' * (m > 1)} ({loss.__name__}, {dtype})"
    with saved_tensors_hooks(keep, lambda each: each.tensor):
        answer = called(call, accumulate, model, loss, inputs, targets, m)
    if not all(map(torch.equal, before, model.parameters())):
        hint = "Only `.grad` should change. Which line writes to its arguments?"
        raise Wrong(f"{call}: parameters have changed", hint)
    if max(given, default=0) > math.ceil(rows / m) or sum(given) != rows or len(given) > m:
        hint = "Pass every row once, in at most m parts, none larger than a micro-batch."
        raise Wrong(f"{call}: the model was given {given} rows", hint)
    if any(alive):
        hint = "When do the activations of a micro-batch go? Not before its backward."
        raise Wrong(f"{call}: a forward began while an earlier one's activations were held", hint)
    if not model.training:
        hint = "The caller goes on training. Put the mode back, or leave it."
        raise Wrong(f"{call}: the model is left in evaluation mode", hint)
    for (name, ours), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        if theirs.grad is not None:
            where = f"{call}: the gradient of {name}"
            _check_gradient(where, ours.grad, theirs.grad, given)
    hint = "Return the mean over all rows. How much weight does each part get?"
    got = plain(answer) if isinstance(answer, Tensor) else answer
    expect(f"{call}: returned", got, right.item(), otherwise=hint, tolerance=1e-5)


def _check_gradient(where: str, got: Tensor | None, right: Tensor, sizes: list[int]) -> None:
    if got is None:
        raise Wrong(f"{where} is None", "Do you call backward()?")
    if got.isnan().any():
        raise Wrong(f"{where} holds nan", NAN)
    if not torch.allclose(got, right, rtol=1e-4, atol=1e-6):
        ratio = ((got * right).sum() / right.square().sum()).item()
        count = len(sizes)  # `chunk` may make fewer micro-batches than were asked for
        hint = f"Yours is {ratio:.2f} times the right one, and there are {count} micro-batches."
        if len(set(sizes)) > 1:
            hint += f" Here their sizes are {sizes}. How much weight does each of them get?"
        raise Wrong(f"{where} is not that of the whole batch", hint)


@exercise("09.2", "the order of 1F1B", file="exercise_09_2.py")
def check_09_2() -> list[str]:
    """The list of every stage for 1 to 5 stages and 1 to 9 micro-batches."""
    probe("probe_09_2.py", 1)
    return ["every list is right: 1 to 5 stages, 1 to 9 micro-batches, also fewer than the warm-up"]


@exercise("09.3", "clip across stages", file="exercise_09_3.py", without=TORCHS)
def check_09_3() -> list[str]:
    """Norms, gradients and bytes on 1 to 4 ranks, over all ranks and over pairs."""
    probe_each("probe_09_3.py", (2, 3, 4, 1))
    return [
        "1 to 4 ranks, and pairs of 4; float64, float32, float16; stages without a gradient:",
        "one norm, one factor, small gradients unchanged; each rank sent a single number",
    ]


@exercise("09.4", "split a linear layer's backward", file="exercise_09_4.py")
def check_09_4() -> list[str]:
    """What backward computes at once, what it puts off, and what it adds to `.grad`."""
    probe_each("probe_09_4.py", (1,), hint=of_backward)
    return [
        "1 to 4 dimensions, with and without bias, frozen or not, float32 and float64:",
        "B: one product, for the input's gradient; W: the weights' gradients, added to `.grad`",
    ]
