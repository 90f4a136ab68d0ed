"""01.3: curvature without the matrix."""

from collections.abc import Callable
from typing import Any

import tape
import torch
from torch import Tensor

from course_utils.checking.compare import Wrong, article, count, expect, judge
from course_utils.checking.findings import observe, random_values

TITLE = "curvature without the matrix"
PROVEN = (
    "H v equals the product with torch's full Hessian, n = 3 and n = 30; 0 for a linear f",
    "f called once, and as many operations on the tape for n = 30 as for n = 3",
)
WITHOUT = ("autograd", "hessian", "jacobian", "jacrev", "jacfwd", "jvp", "vjp", "linearize")
OURS = '''"""A Hessian-vector product from two backward passes."""

from collections.abc import Callable

import torch
from tape import Variable, grad


def hvp(f: Callable[[Variable], Variable], x: Variable, v: torch.Tensor) -> torch.Tensor:
    """The Hessian of f at x times v, all of length n."""
    (gradient,) = grad(f(x), [x])
    (product,) = grad((gradient * v).sum(), [x])  # d/dx of (gradient . v) = H v
    return torch.zeros_like(v) if product is None else product.value  # None: f is linear
'''
LINEAR = "When is the gradient independent of x, and what is the curvature then?"
OF_WHAT = "H v is the gradient of a number. Of which?"


def cases(hvp: Callable) -> None:
    """The product, how often f was called, and how the tape grew with n."""
    first, small = look(hvp, "mixed", mixed, 3)
    before = first.tolist()
    _, large = look(hvp, "mixed", mixed, 30)
    look(hvp, "linear", linear, 3)
    look(hvp, "mixed, v = 0", mixed, 3)
    hint = "The caller may still hold the first answer. Does yours keep one buffer for all calls?"
    expect("after other calls, the first product is", first, before, (), hint)
    if large > small:
        raise Wrong(
            f"the tape has {small} entries for n = 3 and {large} for n = 30, expected the same",
            "Does yours build the matrix row by row? H v is the gradient of which number?",
        )


def mixed(x: Any) -> Any:
    """Each second derivative depends on all of x."""
    square = (x * x).sum()
    return square * square * 0.5 + x.exp().sum()


def linear(x: Any) -> Any:
    """Without curvature."""
    return (x * 3.0).sum()


def look(hvp: Callable, name: str, f: Callable, n: int) -> tuple[Tensor, int]:
    """One product, and how many entries the tape has after it."""
    calls, answers = [], []

    def counted(x: Any) -> Any:
        """F, and one more call."""
        calls.append(x)
        return f(x)

    def kept(*arguments: Any) -> Any:
        """The student's answer, of which `observe` returns the numbers only."""
        answers.append(hvp(*arguments))
        return answers[-1]

    tape.reset_tape()
    x = 0.3 * random_values(n, n, dtype=torch.float64).cpu()
    v = random_values(n + 1, n, dtype=torch.float64).cpu() * (name != "mixed, v = 0")
    variable, direction = tape.Variable(x.clone(), name="x"), v.clone()
    where = f"f {name}, n = {n}:"
    try:
        found = observe(kept, counted, variable, direction, may_change=True)
    except (AttributeError, TypeError) as error:  # what happens to a None
        if name != "linear":
            raise
        raise Wrong(f"{where} it raised {type(error).__name__}: {error}", LINEAR) from None
    if found["kind"] != "Tensor":
        hint = LINEAR if name == "linear" else "Return the numbers, as a tensor."
        raise Wrong(f"{where} it gave {article(found['kind'])}, expected a Tensor", hint)
    if len(calls) != 1:
        hint = "Don't compute f again: what did the first gradient leave on the tape?"
        raise Wrong(f"{where} f was called {count(len(calls), 'time')}, expected once", hint)
    entries = len(tape.gradient_tape)
    hessian = torch.autograd.functional.hessian(f, x)
    gradient = torch.autograd.functional.jacobian(f, x)
    mistakes = [
        ("That is the gradient. H v needs one more derivative.", gradient),
        ("That is the gradient times v, number by number. What is the next step?", gradient * v),
        (
            "That uses the diagonal of H only. How does x1 change the slope along x2?",
            hessian.diagonal() * v,
        ),
        ("That is H times ones. Where does v come in?", hessian.sum(1)),
    ]
    judge(where, found, hessian @ v, mistakes, OF_WHAT, dtype=x.dtype, verb="the product is")
    if not torch.equal(variable.value, x) or not torch.equal(direction, v):
        raise Wrong(f"{where} it changed x or v", "They belong to the caller. Make new values.")
    return answers[0], entries


SECOND = "(product,) = grad((gradient * v).sum(), [x])"
RETURNED = "torch.zeros_like(v) if product is None else product.value"
ROWS = (
    SECOND,
    "unit = torch.eye(len(v), dtype=v.dtype)\n"
    "rows = [grad((gradient * row).sum(), [x])[0] for row in unit]\n"
    "product = rows[0]",
    "product.value",
)

WRONG = [
    ("the number", SECOND, "return (gradient * v).sum().value", "expected [-2.544"),
    ("the gradient", SECOND, "return gradient.value", "That is the gradient. H v"),
    ("gradient times v", SECOND, "return gradient.value * v", "times v, number by number"),
    ("v forgotten", "gradient * v", "gradient", "Where does v come in?"),
    (
        "v afterwards",
        "gradient * v",
        "gradient",
        "product.value",
        "product.value * v",
        "H v is the gradient of a number",
    ),
    (
        "differences",
        SECOND,
        "y = Variable(x.value + 1e-6 * v)\n(product,) = grad(f(y), [y])",
        "product.value",
        "(product.value - gradient.value) / 1e-6",
        "f was called 2 times",
    ),
    ("a linear f forgotten", RETURNED, "product and product.value", "independent of x"),
    ("the whole matrix", *ROWS, "torch.stack([row.value for row in rows]) @ v", "row by row"),
    (
        "the diagonal",
        *ROWS,
        "torch.stack([row.value for row in rows]).diagonal() * v",
        "the diagonal of H only",
    ),
    (
        "a Variable",
        RETURNED,
        "product or Variable(torch.zeros_like(v))",
        "gave a Variable, expected a Tensor",
    ),
    (
        "torch's whole Hessian",
        "(gradient,) =",
        "return torch.autograd.functional.hessian(f, x.value) @ v\n(gradient,) =",
        "uses hessian, which does what you are asked to write",
    ),
    (
        "one buffer for all calls",
        f"return {RETURNED}",
        f"answer = {RETURNED}\n"
        "kept = hvp.__dict__.setdefault(str(len(v)), answer.clone())\n"
        "return kept.copy_(answer)",
        "one buffer for all calls",
    ),
    ("half", "->", "lambda answer: answer.half().to(answer.dtype)", "the last digits are gone"),
    (
        "v is used up",
        "gradient * v",
        "gradient * v.clone()",
        "return torch",
        "v.zero_()\nreturn torch",
        "changed x or v",
    ),
    (
        "divided by its length",
        "gradient * v",
        "gradient * (v / v.norm())",
        "product.value",
        "product.value * v.norm()",
        "f mixed, v = 0, n = 3: the product is",
    ),
    (
        "not a number",
        "(gradient * v).sum()",
        "gradient * v",
        "grad needs a loss that is one number",
    ),
]
RIGHT = [
    ("v as a Variable", "gradient * v)", "gradient * Variable(v))"),
    ("a copy", "->", "torch.clone"),
]
