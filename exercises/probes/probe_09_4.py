"""Runs forward and backward through the student's SplitLinear, beside PyTorch's linear."""

import gc

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checking.compare import NAN, TOLERANCE, Wrong, has_nan, name_of, plain
from course_utils.checking.findings import judging
from course_utils.checking.values import is_tensor

from exercise_09_4 import SplitLinear

PRODUCTS = {"mm", "addmm", "bmm", "matmul", "mv", "dot", "baddbmm", "einsum"}


class Products(TorchDispatchMode):
    """Counts matrix products."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func._schema.name.partition("::")[2] in PRODUCTS
        return func(*args, **(kwargs or {}))


def near(ours: Tensor | None, right: Tensor | None) -> bool:
    """Whether two gradients are close, with the same shape and dtype."""
    if not is_tensor(ours) or right is None:
        return ours is right
    same = ours.shape == right.shape and ours.dtype == right.dtype
    bound = TOLERANCE[name_of(right.dtype)]
    return same and torch.allclose(ours, right, rtol=bound, atol=bound)


def unlike(where: str, got: Tensor | None, question: str) -> Wrong:
    """A wrong gradient, and the question that leads to the mistake."""
    return Wrong(where, NAN if isinstance(got, Tensor) and has_nan(plain(got)) else question)


def look(here: str, shape: tuple[int, ...], dtype: torch.dtype, case: str, seed: int) -> None:
    """Raise `Wrong` at the first thing that one layer does wrong."""
    torch.manual_seed(seed)
    x = torch.randn(shape, dtype=dtype)
    weight, bias = torch.randn(3, shape[-1], dtype=dtype), torch.randn(3, dtype=dtype)
    gradient = torch.randn(*shape[:-1], 3, dtype=dtype)
    ours = [x.clone(), weight.clone(), None if "no bias" in case else bias.clone()]
    theirs = [None if t is None else t.clone() for t in ours]
    for x_, weight_, bias_ in (ours, theirs):
        x_.requires_grad_("first stage" not in case)
        weight_.requires_grad_("frozen weight" not in case)
        if bias_ is not None:
            bias_.requires_grad_("frozen bias" not in case)
        if "added" in case:
            weight_.grad, bias_.grad = torch.ones_like(weight_), torch.ones_like(bias_)
    put_off: list = []
    starts = [None if t is None or t.grad is None else t.grad.clone() for t in ours]
    right = linear(*theirs)
    y = SplitLinear.apply(*ours, put_off.append)
    if not isinstance(y, Tensor) or not near(y.detach(), right.detach()):
        hint = "What does torch.nn.functional.linear give?"
        raise unlike(f"{here}: forward does not give x W^T + b", y, hint)
    right.backward(gradient)
    before = gradient.clone()
    with Products() as products:
        y.backward(gradient)
    if not near(ours[0].grad, theirs[0].grad):
        hint = "g is (..., k), W is (k, n) and x is (..., n)."
        raise unlike(f"{here}: the gradient of x is wrong after B", ours[0].grad, hint)
    for name, tensor, start in zip(("weight", "bias"), ours[1:], starts[1:], strict=True):
        if tensor is not None and not near(tensor.grad, start):
            hint = "Only the gradient of x is due in B. Put the rest off."
            raise Wrong(f"{here}: {name}.grad has changed in B, before W was called", hint)
    if len(put_off) != 1 or not callable(put_off[0]):
        hint = "Pass put_off one function without arguments."
        times = f"put_off was called {len(put_off)} times, or not with a function"
        raise Wrong(f"{here}: {times}", hint)
    if products.count > 1:
        hint = "Which of them can wait? The previous stage needs only the gradient of x."
        raise Wrong(f"{here}: backward computed {products.count} matrix products", hint)
    put_off[0]()
    for name, tensor, other in zip(("weight", "bias"), ours[1:], theirs[1:], strict=True):
        if tensor is None or near(tensor.grad, other.grad):
            continue
        if other.grad is None:
            hint = "Does it require a gradient?"
            raise Wrong(f"{here}: a frozen {name} was given a gradient", hint)
        if "added" in case:
            hint = "Micro-batches add up: add to what is there."
            raise unlike(f"{here}: {name}.grad lost what was in it", tensor.grad, hint)
        hint = "Sum over all rows, in all leading dimensions. In which dtype?"
        raise unlike(f"{here}: {name}.grad is wrong after W", tensor.grad, hint)
    inputs = (ours[0], x), (ours[1], weight), (gradient, before)
    if not all(torch.equal(a.detach(), b) for a, b in inputs):
        hint = "They belong to the caller. Make new tensors."
        raise Wrong(f"{here}: x, W or the gradient was changed", hint)


def two_layers(dtype: torch.dtype) -> None:
    """Raise `Wrong` unless two layers and two micro-batches give linear's gradients, and end."""
    here = f"two layers, two micro-batches, {name_of(dtype)}"
    torch.manual_seed(1)
    weights = [torch.randn(4, 4, dtype=dtype, requires_grad=True) for _ in range(2)]
    batches = [torch.randn(5, 4, dtype=dtype) for _ in range(2)]
    factors = [torch.randn(5, 4, dtype=dtype) for _ in range(2)]
    for batch, factor in zip(batches, factors, strict=True):
        linear(linear(batch, weights[0]).tanh(), weights[1]).backward(factor)
    right, put_off, hidden = [weight.grad for weight in weights], [[], []], []
    for weight in weights:
        weight.grad = None

    def forward(number: int) -> Tensor:
        later = put_off[number].append
        middle = SplitLinear.apply(batches[number], weights[0], None, later).tanh()
        hidden.append(StorageWeakRef(middle.untyped_storage()))
        return SplitLinear.apply(middle, weights[1], None, later)

    outputs = [forward(0), forward(1)]  # F0 F1 B0 B1 W1 W0
    for number in (0, 1):
        outputs[number].backward(factors[number])
    for work in put_off[1][::-1] + put_off[0][::-1]:
        work()
    for number, (weight, gradient) in enumerate(zip(weights, right, strict=True)):
        if not near(weight.grad, gradient):
            hint = "Each call needs its own x, W and g. Where does yours keep them until W?"
            wrong = f"{here}, F0 F1 B0 B1 W1 W0: the gradient of layer {number}'s weight is wrong"
            raise unlike(wrong, weight.grad, hint)
        if weight.grad.requires_grad:
            hint = "What was put off runs outside backward, where autograd records. What of x?"
            raise Wrong(f"{here}: layer {number}'s weight.grad has a graph of its own", hint)
    put_off.clear()
    outputs.clear()
    del work
    gc.collect()
    if not all(each.expired() for each in hidden):
        hint = "Who still holds x after W? A class, a global, or a graph that goes round in a ring?"
        raise Wrong(f"{here}: activations are still alive after every W", hint)


CASES = ("plain", "no bias", "frozen weight", "frozen bias", "added to .grad", "first stage")
SHAPES = ((4, 5), (2, 3, 5), (5,), (2, 1, 3, 4))
for seed, shape in enumerate(SHAPES):
    for case in CASES:
        for dtype in (torch.float32, torch.float64):
            with judging():
                look(f"x {shape}, {case}", shape, dtype, case, seed)
for dtype in (torch.float32, torch.float64):
    with judging():
        two_layers(dtype)
