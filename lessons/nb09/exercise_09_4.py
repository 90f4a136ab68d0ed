"""09.4: split a linear layer's backward."""

import gc
from collections.abc import Callable

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checking.compare import NAN, TOLERANCE, Wrong, has_nan, name_of, plain
from course_utils.checking.findings import judging
from course_utils.checking.values import is_tensor

TITLE = "split a linear layer's backward"
PROVEN = (
    "1 to 4 dimensions, with and without bias, frozen or not, float32 and float64, an infinity:",
    "B: one product, for the input's gradient; W: the weights' gradients, added to `.grad`",
)
OURS = '''"""A linear layer whose backward gives the input's gradient now and the weights' later."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear


class SplitLinear(torch.autograd.Function):
    """y = x W^T + b. Backward returns the gradient of x, and puts off those of W and b."""

    @staticmethod
    def forward(
        ctx, x: Tensor, weight: Tensor, bias: Tensor | None, put_off: Callable
    ) -> Tensor:  # (..., n), (k, n), (k,) -> (..., k)
        ctx.save_for_backward(x)
        ctx.weight, ctx.bias, ctx.put_off = weight, bias, put_off  # whose `.grad` W adds to
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:  # (..., k) -> (..., n)
        (x,), weight, bias = ctx.saved_tensors, ctx.weight, ctx.bias
        x = x.detach()  # or the gradients of W would have a graph, which nobody could free

        def weights() -> None:
            rows = gradient.reshape(-1, gradient.shape[-1])  # (rows, k)
            add_gradient(weight, rows.T @ x.reshape(-1, x.shape[-1]))  # (k, rows) @ (rows, n)
            if bias is not None:
                add_gradient(bias, rows.sum(0))

        ctx.put_off(weights)
        return gradient @ weight, None, None, None  # (..., k) @ (k, n)


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """Add to `.grad`, as autograd does; a frozen parameter gets none."""
    if parameter.requires_grad:
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
'''
CASES = ("plain", "no bias", "frozen weight", "frozen bias", "added to .grad", "first stage")
CASES += ("infinite gradient",)
SHAPES = ((4, 5), (2, 3, 5), (5,), (2, 1, 3, 4))

INFINITE = "A gradient is infinite. Don't hide that: the training has diverged."
PRODUCTS = {"mm", "addmm", "bmm", "matmul", "mv", "dot", "baddbmm", "einsum"}


def cases(SplitLinear: type) -> None:
    """What backward computes at once, what it puts off, and what it adds to `.grad`."""
    for seed, shape in enumerate(SHAPES):
        for case in CASES:
            for dtype in (torch.float32, torch.float64):
                with judging():
                    look(SplitLinear.apply, f"x {shape}, {case}", shape, dtype, case, seed)
    for dtype in (torch.float32, torch.float64):
        with judging():
            two_layers(SplitLinear.apply, dtype)


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
    return same and torch.allclose(ours, right, rtol=bound, atol=bound, equal_nan=True)


def unlike(where: str, got: Tensor | None, question: str) -> Wrong:
    """A wrong gradient, and the question that leads to the mistake."""
    return Wrong(where, NAN if isinstance(got, Tensor) and has_nan(plain(got)) else question)


def look(
    split_linear: Callable,
    here: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    case: str,
    seed: int,
) -> None:
    """Raise `Wrong` at the first thing that one layer does wrong."""
    torch.manual_seed(seed)
    x = torch.randn(shape, dtype=dtype)
    weight, bias = torch.randn(3, shape[-1], dtype=dtype), torch.randn(3, dtype=dtype)
    gradient = torch.randn(*shape[:-1], 3, dtype=dtype)
    if "infinite" in case:
        gradient[..., 1] = torch.inf
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
    y = split_linear(*ours, put_off.append)
    if not isinstance(y, Tensor) or not near(y.detach(), right.detach()):
        hint = "What does torch.nn.functional.linear give?"
        raise unlike(f"{here}: forward does not give x W^T + b", y, hint)
    right.backward(gradient)
    before = gradient.clone()
    with Products() as products:
        y.backward(gradient)
    if not near(ours[0].grad, theirs[0].grad):
        hint = "g is (..., k), W is (k, n) and x is (..., n)."
        hint = INFINITE if "infinite" in case else hint
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
        hint = INFINITE if "infinite" in case else hint
        raise unlike(f"{here}: {name}.grad is wrong after W", tensor.grad, hint)
    for name, tensor in zip(("weight", "bias"), ours[1:], strict=True):
        held = None if tensor is None else tensor.grad
        if held is not None and held.data_ptr() in (gradient.data_ptr(), ours[0].data_ptr()):
            hint = "It belongs to the caller, who may still need it. Put a copy into `.grad`."
            raise Wrong(f"{here}: {name}.grad is memory that you were given", hint)
    inputs = (ours[0], x), (ours[1], weight), (gradient, before)
    if not all(torch.equal(a.detach(), b) for a, b in inputs):
        hint = "They belong to the caller. Make new tensors."
        raise Wrong(f"{here}: x, W or the gradient was changed", hint)


def two_layers(split_linear: Callable, dtype: torch.dtype) -> None:
    """Raise `Wrong` unless two layers and two micro-batches give linear's gradients, and end."""
    here = f"two layers, two micro-batches, {name_of(dtype)}"
    torch.manual_seed(1)
    weights = [torch.randn(4, 4, dtype=dtype, requires_grad=True) for _ in range(2)]
    batches = [torch.randn(5, 4, dtype=dtype, requires_grad=True) for _ in range(2)]
    factors = [torch.randn(5, 4, dtype=dtype) for _ in range(2)]
    results = [linear(linear(batch, weights[0]).tanh(), weights[1]) for batch in batches]
    for result, factor in zip(results, factors, strict=True):
        result.backward(factor)
    right, put_off, hidden = [each.grad for each in weights + batches], [[], []], []
    for each in weights + batches:
        each.grad = None

    def forward(number: int) -> Tensor:
        later = put_off[number].append
        middle = split_linear(batches[number], weights[0], None, later).tanh()
        hidden.append(StorageWeakRef(middle.untyped_storage()))
        return split_linear(middle, weights[1], None, later)

    outputs = [forward(0), forward(1)]  # F0 F1 B0 B1 W1 W0
    buffer = "The caller may still hold the first one. Does yours keep one buffer for all calls?"
    if not all(near(y.detach(), each.detach()) for y, each in zip(outputs, results, strict=True)):
        raise Wrong(f"{here}: F1 changed what F0 had returned", buffer)
    gradients = [torch.autograd.grad(outputs[n], batches[n], factors[n])[0] for n in (0, 1)]
    for work in put_off[1][::-1] + put_off[0][::-1]:
        work()
    if not all(map(near, gradients, right[2:])):
        raise Wrong(f"{here}: B1 changed the gradient of x that B0 had returned", buffer)
    for number, (weight, gradient) in enumerate(zip(weights, right[:2], strict=True)):
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


PUT_OFF = "ctx.put_off(weights)"
INPUTS = "x.reshape(-1, x.shape[-1])"
PRODUCT = f"rows.T @ {INPUTS}"
LATER = "def weights() -> None:"
ADD_BIAS = "add_gradient(bias, rows.sum(0))"

WRONG = [
    (
        "nothing is recorded, but x keeps its graph",
        "x = x.detach()",
        "pass",
        "def weights() -> None:",
        "@torch.no_grad()\ndef weights() -> None:",
        "still alive after every W",
    ),
    ("nothing put off", PUT_OFF, "weights()", "Only the gradient of x is due in B"),
    (
        "only the addition put off",
        PRODUCT,
        "product",
        LATER,
        f"product = gradient.reshape(-1, len(weight)).T @ {INPUTS}\n{LATER}",
        "matrix products",
    ),
    (
        "written over",
        f"add_gradient(weight, {PRODUCT})",
        f"weight.grad = {PRODUCT}",
        "was given a gradient",
    ),
    ("transposed", "gradient @ weight", "gradient @ weight.T", "raised RuntimeError"),
    ("no bias", ADD_BIAS, "pass", "bias.grad is wrong after W"),
    (
        "two dimensions",
        "gradient.reshape(-1, gradient.shape[-1])",
        "gradient",
        INPUTS,
        "x",
        "raised RuntimeError",
    ),
    (
        "frozen ones too",
        "if parameter.requires_grad:",
        "if True:",
        "frozen weight was given a gradient",
    ),
    (
        "what was there is lost",
        ADD_BIAS,
        "bias.grad = rows.sum(0) if bias.requires_grad else None",
        "lost what was in it",
    ),
    ("twice", PUT_OFF, f"{PUT_OFF}\n{PUT_OFF}", "called 2 times"),
    ("a gradient with a graph", "x = x.detach()", "pass", "has a graph of its own"),
    (
        "state on the class",
        PUT_OFF,
        f"SplitLinear.x = x\n{PUT_OFF}",
        LATER,
        f"{LATER}\n    x = SplitLinear.x",
        "Each call needs its own x",
    ),
    (
        "hides an infinity",
        "return gradient @ weight",
        "return gradient.nan_to_num(posinf=0) @ weight",
        "Don't hide that",
    ),
    (
        "hides an infinity later",
        "rows = gradient.reshape",
        "rows = gradient.nan_to_num(posinf=0).reshape",
        "Don't hide that",
    ),
    (
        "one buffer for all outputs",
        "return linear(x, weight, bias)",
        "y = linear(x, weight, bias)\n"
        "kept = globals().setdefault(str((y.shape, y.dtype)), torch.empty_like(y))\n"
        "return kept.copy_(y).view_as(kept)",
        "keep one buffer for all calls?",
    ),
    (
        "one buffer for all gradients",
        "return gradient @ weight, ",
        "g = gradient @ weight\n"
        "kept = globals().setdefault(str((g.shape, g.dtype)), torch.empty_like(g))\n"
        "return kept.copy_(g), ",
        "keep one buffer for all calls?",
    ),
    (
        "the caller's gradient",
        ADD_BIAS,
        "add_gradient(bias, gradient if gradient.dim() == 1 else rows.sum(0))",
        "memory that you were given",
    ),
]
RIGHT = [
    (
        "by einsum and two lists",
        PRODUCT,
        f'torch.einsum("rk,rn->kn", rows, {INPUTS})',
    ),
]
