"""09.1: fix the loss scale."""

import copy
import math
import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.checking.calls import called
from course_utils.checking.compare import NAN, Wrong, expect

TITLE = "fix the loss scale"
PROVEN = (
    "5 to 9 rows in 1 to 5 micro-batches, two losses, two dtypes, and a loss that is infinite:",
    "gradient and mean loss of the whole batch, with no more rows at once than a micro-batch",
)
OURS = '''"""Fix the loss scale."""


def accumulate(model, loss, inputs, targets, microbatches):
    """Backward in pieces: leave in `.grad` the gradient of the mean loss of all rows."""
    total = 0.0
    parts = zip(inputs.chunk(microbatches), targets.chunk(microbatches), strict=True)
    for x, y in parts:
        part = loss(model(x), y) * (len(x) / len(inputs))
        part.backward()
        total += part.item()
    return total
'''
BATCHES = ((8, 4), (8, 1), (6, 2), (7, 3), (9, 4), (5, 5))  # rows, micro-batches


class Saved:
    """A tensor that autograd has saved; it goes when autograd lets go of it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def cases(accumulate: Callable) -> None:
    """Gradients, the loss and the model's inputs, also for micro-batches of unequal size."""
    for dtype in (torch.float64, torch.float32):
        for loss in (mse_loss, cross_entropy):
            for seed, (rows, m) in enumerate(BATCHES):
                look(accumulate, loss, dtype, rows, m, seed)
        look(accumulate, mse_loss, dtype, 7, 3, 9, diverged=True)


def look(
    accumulate: Callable,
    loss: Callable,
    dtype: torch.dtype,
    rows: int,
    m: int,
    seed: int,
    diverged: bool = False,
) -> None:
    """One batch; where the training has diverged, one row's loss is infinite."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)).to(dtype)
    model[0].bias.requires_grad_(False)
    model.train(m > 1)
    inputs = torch.randn(rows, 3, dtype=dtype, generator=generator)
    targets = torch.randn(rows, 4, dtype=dtype, generator=generator)
    if loss is cross_entropy:
        targets = torch.randint(4, (rows,), generator=generator)
    call = f"{rows} rows in {m} micro-batch{'es' * (m > 1)} ({loss.__name__}, {dtype})"
    question = ""
    if diverged:
        targets[1, 2] = torch.inf
        call += ", one row's loss infinite"
        question = "Don't hide an infinity: the training has diverged."
    whole, given = copy.deepcopy(model), []
    if rows == m:  # what an earlier backward has left: add to it
        for parameter in [*model.parameters(), *whole.parameters()]:
            if parameter.requires_grad:
                parameter.grad = torch.ones_like(parameter)
    (right := loss(whole(inputs), targets)).backward()
    saved: weakref.WeakSet[Saved] = weakref.WeakSet()
    alive: list[int] = []  # what autograd still holds at the beginning of each forward pass

    def note(_: nn.Module, x: tuple[Tensor, ...]) -> None:
        given.append(len(x[0]))
        alive.append(len(saved))

    def keep(tensor: Tensor) -> Saved:
        saved.add(each := Saved(tensor))
        return each

    model.register_forward_pre_hook(note)
    before = [parameter.clone() for parameter in model.parameters()]
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
    modes = [each.training for each in whole.modules()]
    if [each.training for each in model.modules()] != modes:
        was, left = ("training", "evaluation") if whole.training else ("evaluation", "training")
        hint = "The caller goes on in its own mode. Put the mode back, or leave it."
        raise Wrong(f"{call}: the model was in {was} mode, and is left in {left} mode", hint)
    for (name, ours), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        if theirs.grad is not None:
            where = f"{call}: the gradient of {name}"
            expect_gradient(where, ours.grad, theirs.grad, given, question)
    hint = question or "Return the mean over all rows. How much weight does each part get?"
    expect(f"{call}: returned", answer, right.item(), otherwise=hint, tolerance=1e-5)


def expect_gradient(
    where: str, got: Tensor | None, right: Tensor, sizes: list[int], question: str
) -> None:
    """Raise `Wrong` unless a gradient is that of the whole batch."""
    if got is None:
        raise Wrong(f"{where} is None", "Do you call backward()?")
    if torch.allclose(got, right, rtol=1e-4, atol=1e-6):
        return
    said = f"{where} is not that of the whole batch"
    if question:
        raise Wrong(said, question)
    if got.isnan().any():
        raise Wrong(f"{where} holds nan", NAN)
    ratio = ((got * right).sum() / right.square().sum()).item()
    count = len(sizes)  # `chunk` may make fewer micro-batches than were asked for
    hint = f"Yours is {ratio:.2f} times the right one, and there are {count} micro-batches."
    if len(set(sizes)) > 1:
        hint += f" Here their sizes are {sizes}. How much weight does each of them get?"
    raise Wrong(said, hint)


CHUNKS = "inputs.chunk(microbatches), targets.chunk(microbatches)"
WEIGHT = "(len(x) / len(inputs))"
START = "total = 0.0"

WRONG = [
    ("as published", WEIGHT, "1", "Yours is 4.00 times"),
    ("the number of parts", WEIGHT, "(1 / microbatches)", "their sizes are"),
    (
        "the loss as a mean of means",
        f"part = loss(model(x), y) * {WEIGHT}",
        f"mean = loss(model(x), y)\npart = mean * {WEIGHT}",
        "part.item()",
        "mean.item() / len(inputs.chunk(microbatches))",
        "How much weight does each part",
    ),
    ("the whole batch at once", CHUNKS, "[inputs], [targets]", "Pass every row once"),
    ("no backward", CHUNKS, "[inputs], [targets]", "part.backward()", "pass", "rows"),
    ("nothing returned", "return total", "return None", "returned None, expected"),
    (
        "the inputs scaled in place",
        "return total",
        "inputs.zero_()\nreturn total",
        "changed its arguments",
    ),
    (
        "takes the step too",
        "return total",
        "for each in model.parameters():\n"
        "    if each.grad is not None:\n"
        "        each.data -= each.grad\n"
        "return total",
        "parameters have changed",
    ),
    (
        "one backward at the end",
        "part.backward()",
        "total = total + part",
        "total += part.item()",
        "pass",
        "return total",
        "total.backward()\nreturn total.item()",
        "activations were held",
    ),
    (
        "one row at a time",
        CHUNKS,
        "inputs.split(1), targets.split(1)",
        "in at most m parts",
    ),
    (
        "evaluation mode",
        START,
        f"model.eval()\n{START}",
        "was in training mode, and is left in evaluation mode",
    ),
    (
        "clears what was there",
        START,
        f"model.zero_grad()\n{START}",
        "not that of the whole batch",
    ),
    (
        "training mode",
        "return total",
        "model.train()\nreturn total",
        "was in evaluation mode, and is left in training mode",
    ),
    (
        "a layer's mode",
        "return total",
        "model[1].eval()\nreturn total",
        "the model was in training mode",
    ),
    (
        "hides an infinite loss",
        "part = loss(model(x), y)",
        "part = loss(model(x), y.nan_to_num(posinf=0) if y.is_floating_point() else y)",
        "Don't hide an infinity",
    ),
    ("in half precision", "part.item()", "part.half().item()", "the last digits are gone"),
    ("a list", "->", "lambda loss: [loss]", "a number alone"),
    ("words", "->", "str", "Return a number"),
]
RIGHT = [
    (
        "a sum over rows, with tensor_split",
        CHUNKS,
        "inputs.tensor_split(microbatches), targets.tensor_split(microbatches)",
        WEIGHT,
        "len(x)",
        "part.backward()",
        "(part / len(inputs)).backward()",
        "part.item()",
        "part.detach()",
        "return total",
        "return total / len(inputs)",
    ),
    ("numpy's number", "->", "numpys"),
    (
        "of single precision",
        "->",
        "lambda loss: leaves(loss, lambda n: torch.tensor(n, dtype=torch.float32))",
    ),
    (
        "a fraction",
        "->",
        "lambda n: n if n == float('inf') else __import__('fractions').Fraction(n)",
    ),
]
