"""Calls the student's hvp, counts the calls of f and what was put on the tape."""

import tape
import torch

from course_utils.exercises.findings import report

from exercise_01_3 import hvp


def mixed(x):
    """Each second derivative depends on all of x."""
    square = (x * x).sum()
    return square * square * 0.5 + x.exp().sum()


def linear(x):
    """Without curvature."""
    return (x * 3.0).sum()


tape.trace(False)
for name, f, n in (("mixed", mixed, 3), ("mixed", mixed, 30), ("linear", linear, 3)):
    calls = 0

    def counted(x, f=f):
        """F, and one more call."""
        global calls
        calls += 1
        return f(x)

    tape.reset_tape()
    x = torch.linspace(0.1, 0.3, n, dtype=torch.float64)
    v = torch.linspace(1.0, -2.0, n, dtype=torch.float64)
    try:
        answer = hvp(counted, tape.Variable(x.clone(), name="x"), v.clone())
    except (AttributeError, TypeError) as error:  # what comes of a None
        if name != "linear":
            raise
        answer = error
    hessian = torch.autograd.functional.hessian(f, x)
    gradient = torch.autograd.functional.jacobian(f, x)
    report(
        case=name,
        n=n,
        kind=type(answer).__name__,
        answer=answer if isinstance(answer, torch.Tensor) else None,
        expected=hessian @ v,
        calls=calls,
        entries=len(tape.gradient_tape),
        mistakes={
            "gradient": gradient,
            "gradient times v": gradient * v,
            "diagonal": hessian.diagonal() * v,
            "ones": hessian.sum(1),
        },
    )
