"""Runs forward and backward through the student's SplitLinear, beside PyTorch's linear."""

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.exercises.compare import Wrong
from course_utils.exercises.findings import judging

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
    if ours is None or right is None:
        return ours is right
    same = ours.shape == right.shape and ours.dtype == right.dtype
    return same and torch.allclose(ours, right, rtol=1e-4, atol=1e-5)


def look(shape: tuple[int, ...], dtype: torch.dtype, case: str, seed: int) -> tuple | None:
    """What is wrong, and the question that leads to the mistake; None if nothing is wrong."""
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
    if not near(y.detach(), right.detach()):
        return "forward does not give x W^T + b", "What does torch.nn.functional.linear give?"
    right.backward(gradient)
    before = gradient.clone()
    with Products() as products:
        y.backward(gradient)
    if not near(ours[0].grad, theirs[0].grad):
        return "the gradient of x is wrong after B", "g is (..., k), W is (k, n) and x is (..., n)."
    for name, tensor, start in zip(("weight", "bias"), ours[1:], starts[1:], strict=True):
        if tensor is not None and not near(tensor.grad, start):
            hint = "Only the gradient of x is due in B. Put the rest off."
            return f"{name}.grad has changed in B, before W was called", hint
    if len(put_off) != 1 or not callable(put_off[0]):
        hint = "Pass put_off one function without arguments."
        return f"put_off was called {len(put_off)} times, or not with a function", hint
    if products.count > 1:
        hint = "Which of them can wait? The previous stage needs only the gradient of x."
        return f"backward computed {products.count} matrix products", hint
    put_off[0]()
    for name, tensor, other in zip(("weight", "bias"), ours[1:], theirs[1:], strict=True):
        if tensor is None or near(tensor.grad, other.grad):
            continue
        if other.grad is None:
            return f"a frozen {name} was given a gradient", "Does it require a gradient?"
        if "added" in case:
            return f"{name}.grad lost what was in it", "Micro-batches add up: add to what is there."
        return f"{name}.grad is wrong after W", "Sum over all rows, in all leading dimensions."
    inputs = (ours[0], x), (ours[1], weight), (gradient, before)
    if not all(torch.equal(a.detach(), b) for a, b in inputs):
        return "x, W or the gradient was changed", "They belong to the caller. Make new tensors."
    return None


CASES = ("plain", "no bias", "frozen weight", "frozen bias", "added to .grad", "first stage")
SHAPES = ((4, 5), (2, 3, 5), (5,), (2, 1, 3, 4))
for seed, shape in enumerate(SHAPES):
    for case in CASES:
        for dtype in (torch.float32, torch.float64):
            with judging():
                if wrong := look(shape, dtype, case, seed):
                    raise Wrong(f"x {shape}, {case}: {wrong[0]}", wrong[1])
