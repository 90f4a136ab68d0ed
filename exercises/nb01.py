"""Notebook 01, tape autograd: the backward pass, operations, curvature, a planted mistake."""

from course_utils.checking import refusals
from course_utils.checking.compare import Wrong
from course_utils.checking.probes import probe
from course_utils.checking.registry import exercise

BY_TORCH = ("autograd", "hessian", "jacobian", "jacrev", "jacfwd", "jvp", "vjp", "linearize")


@exercise("01.1", "the backward pass", file="exercise_01_1.py", without=("grad", *BY_TORCH))
def check_01_1() -> list[str]:
    """Graphs on which a backward pass may go wrong, one after another."""
    probe("probe_01_1.py", 1)
    return [
        "every use of a variable counts, and entries that lead nowhere are skipped",
        "also if the tape continues after the result; and the gradients can be differentiated",
    ]


@exercise("01.2", "three new operations", file="exercise_01_2.py", without=BY_TORCH)
def check_01_2() -> list[str]:
    """Values, gradients and second derivatives beside torch's."""
    probe("probe_01_2.py", 1)
    return [
        "sigmoid, maximum and take: values, gradients and second derivatives equal torch's",
        "also for x = -1000, for equal inputs, for a row taken three times, in two dtypes",
    ]


@exercise("01.3", "curvature without the matrix", file="exercise_01_3.py", without=BY_TORCH)
def check_01_3() -> list[str]:
    """The product, how often f was called, and how the tape grew with n."""
    small, large = (case["entries"] for case in probe("probe_01_3.py", 1)[:2])
    if large > small:
        raise Wrong(
            f"the tape has {small} entries for n = 3 and {large} for n = 30, expected the same",
            "Does yours build the matrix row by row? H v is the gradient of which number?",
        )
    return [
        "H v equals the product with torch's full Hessian, n = 3 and n = 30; 0 for a linear f",
        f"f called once, {large} operations on the tape for n = 3 and for n = 30",
    ]


@exercise("01.4", "find the mistake", file="exercise_01_4.py", without=BY_TORCH)
def check_01_4() -> list[str]:
    """The three operations beside torch's; *to do* as long as the file is unchanged."""
    if refusals.is_as_given("exercise_01_4.py", "a2ba34bbcc50"):
        raise NotImplementedError
    probe("probe_01_4.py", 1)
    return ["leaky_relu, log_softmax and rms_norm: values and gradients right, rows of any length"]
