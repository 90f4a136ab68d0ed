"""Calls the student's hvp, counts the calls of f and what was put on the tape."""

import tape
import torch

from course_utils.checking.compare import Wrong, article, count, judge
from course_utils.checking.findings import judging, observe, random_values, report

from exercise_01_3 import hvp

LINEAR = "When is the gradient independent of x, and what is the curvature then?"
OF_WHAT = "H v is the gradient of a number. Of which?"
TIMES_V = "That is the gradient times v, number by number. What is the next step?"
DIAGONAL = "That uses the diagonal of H only. How does x1 change the slope along x2?"


def mixed(x):
    """Each second derivative depends on all of x."""
    square = (x * x).sum()
    return square * square * 0.5 + x.exp().sum()


def linear(x):
    """Without curvature."""
    return (x * 3.0).sum()


cases = (
    ("mixed", mixed, 3),
    ("mixed", mixed, 30),
    ("linear", linear, 3),
    ("mixed, v = 0", mixed, 3),
)
for name, f, n in cases:
    calls = 0

    def counted(x, f=f):
        """F, and one more call."""
        global calls
        calls += 1
        return f(x)

    tape.reset_tape()
    x = 0.3 * random_values(n, n, dtype=torch.float64).cpu()
    v = random_values(n + 1, n, dtype=torch.float64).cpu() * (name != "mixed, v = 0")
    variable, direction = tape.Variable(x.clone(), name="x"), v.clone()
    try:
        found = observe(hvp, counted, variable, direction, may_change=True)
    except (AttributeError, TypeError) as error:  # what happens to a None
        if name != "linear":
            raise
        found = {"kind": type(error).__name__}
    hessian = torch.autograd.functional.hessian(f, x)
    gradient = torch.autograd.functional.jacobian(f, x)
    report(entries=len(tape.gradient_tape))
    where = f"f {name}, n = {n}:"
    with judging():
        if found["kind"] != "Tensor":
            hint = LINEAR if name == "linear" else "Return the numbers, as a tensor."
            raise Wrong(f"{where} it gave {article(found['kind'])}, expected a Tensor", hint)
        if calls != 1:
            hint = "Don't compute f again: what did the first gradient leave on the tape?"
            raise Wrong(f"{where} f was called {count(calls, 'time')}, expected once", hint)
        mistakes = [
            ("That is the gradient. H v needs one more derivative.", gradient),
            (
                "That is the gradient times v, number by number. What is the next step?",
                gradient * v,
            ),
            (
                "That uses the diagonal of H only. How does x1 change the slope along x2?",
                hessian.diagonal() * v,
            ),
            ("That is H times ones. Where does v come in?", hessian.sum(1)),
        ]
        verb = "the product is"
        judge(where, found, hessian @ v, mistakes, OF_WHAT, dtype=x.dtype, verb=verb)
        if not torch.equal(variable.value, x) or not torch.equal(direction, v):
            raise Wrong(f"{where} it changed x or v", "They belong to the caller. Make new values.")
