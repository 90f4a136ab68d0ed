"""Plausible wrong answers to exercises 01.2 to 01.4, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message), and
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

from course_utils.exercises.checking import find

_HVP = """
import torch
from tape import Variable, grad

def hvp(f, x, v):
    {body}
"""


def _changed(number: str, *changes: tuple[str, str]) -> str:
    """The solution, with parts of it replaced."""
    source = find(number).solution
    for right, wrong in changes:
        assert right in source, right
        source = source.replace(right, wrong)
    return source


def _hvp(*lines: str) -> str:
    return _HVP.format(body="\n    ".join(lines))


def _norm(*lines: str) -> str:
    """The file of 01.4 with another rms_norm."""
    before, start, _ = find("01.4").solution.partition("def rms_norm(x: Variable) -> Variable:\n")
    return before + start + "".join(f"    {line}\n" for line in lines)


def _own_norm(gradient: str) -> tuple[str, ...]:
    """Lines of an rms_norm that writes its own chain rule, D = 3."""
    return (
        "size = x.value.square().mean(1, keepdim=True).sqrt()",
        "def rule(dL_dr):",
        f"    return [{gradient}]",
        "r = record(x.value / size, [x], rule)",
        "return r",
    )


_FIRST = "(g,) = grad(f(x), [x])"

_REPORT = """
from course_utils.worker import report
report(case="mixed", loss=0.5)
"""

RIGHT = {
    "01.2": [("it reports values of its own", find("01.2").solution + _REPORT)],
    "01.4": [
        (
            "right once, as asked",
            _norm(*_own_norm("(dL_dr - r.value * (dL_dr * r).mean(1, keepdim=True)) / size")),
        )
    ],
}

MUTANTS = {
    "01.2": [
        (
            "the derivative with x for s",
            _changed("01.2", ("dL_dr * r * (1 - r)", "dL_dr * x * (1 - x)")),
            "with the result s alone",
        ),
        (
            "a factor is missing",
            _changed("01.2", ("dL_dr * r * (1 - r)", "dL_dr * r")),
            "At x = 0, s = 1/2",
        ),
        (
            "overflows",
            _changed(
                "01.2", ("    r = record(", "    return 1 / (1 + (-x).exp())\n    r = record(")
            ),
            "0 times infinity",
        ),
        (
            "values in place of Variables",
            _changed(
                "01.2", ("dL_dr * r * (1 - r)", "Variable(dL_dr.value * r.value * (1 - r.value))")
            ),
            "an operation on Variables",
        ),
        (
            "not on the tape",
            _changed("01.2", ("return a * share", "return Variable(a.value * share)")),
            "the gradient of a is None",
        ),
        (
            "of equal ones the second gets all",
            _changed("01.2", (" + 0.5 * (a.value == b.value)", ".double()")),
            "In the third, a and b are equal",
        ),
        (
            "the smaller one",
            _changed("01.2", ("a.value > b.value", "a.value < b.value")),
            "Work it out by hand",
        ),
        (
            "a row taken again replaces its gradient",
            _changed(
                "01.2",
                (
                    "    return Variable(chosen) @ x",
                    "    def rule(dL_dr):\n"
                    "        out = torch.zeros(x.shape, dtype=x.value.dtype)\n"
                    "        out[index] = dL_dr.value\n"
                    "        return [Variable(out)]\n"
                    "    return record(x.value[index], [x], rule)",
                ),
            ),
            "Row 2 was taken three times",
        ),
        (
            "as many rows as the largest index",
            _changed("01.2", ("one_hot(index, x.shape[0])", "one_hot(index)")),
            "From workers/exercise_01_2.py, line",
        ),
        (
            "the index is overwritten",
            _changed(
                "01.2",
                ("    chosen =", "    kept = index.clone()\n    index.zero_()\n    chosen ="),
                ("one_hot(index,", "one_hot(kept,"),
            ),
            "changed index",
        ),
        (
            "double precision, always",
            _changed("01.2", ("x.value.sigmoid()", "x.value.double().sigmoid()")),
            "expected float32",
        ),
    ],
    "01.3": [
        (
            "the number",
            _hvp(_FIRST, "return (g * v).sum().value"),
            "expected [-2.544",
        ),
        ("the gradient", _hvp(_FIRST, "return g.value"), "That is the gradient. H v"),
        ("gradient times v", _hvp(_FIRST, "return g.value * v"), "times v, number by number"),
        (
            "v forgotten",
            _hvp(_FIRST, "(h,) = grad(g.sum(), [x])", "return h.value"),
            "Where does v come in?",
        ),
        (
            "v afterwards",
            _hvp(_FIRST, "(h,) = grad(g.sum(), [x])", "return h.value * v"),
            "H v is the gradient of a number",
        ),
        (
            "differences",
            _hvp(
                _FIRST,
                "y = Variable(x.value + 1e-6 * v)",
                "(h,) = grad(f(y), [y])",
                "return (h.value - g.value) / 1e-6",
            ),
            "f was called 2 times",
        ),
        (
            "a linear f forgotten",
            _hvp(_FIRST, "(h,) = grad((g * v).sum(), [x])", "return h and h.value"),
            "independent of x",
        ),
        (
            "the whole matrix",
            _hvp(
                _FIRST,
                "unit = torch.eye(len(v), dtype=v.dtype)",
                "rows = [grad((g * row).sum(), [x])[0] for row in unit]",
                "if rows[0] is None: return torch.zeros_like(v)",
                "return torch.stack([row.value for row in rows]) @ v",
            ),
            "row by row",
        ),
        (
            "the diagonal",
            _hvp(
                _FIRST,
                "unit = torch.eye(len(v), dtype=v.dtype)",
                "rows = [grad((g * row).sum(), [x])[0] for row in unit]",
                "if rows[0] is None: return torch.zeros_like(v)",
                "return torch.stack([row.value for row in rows]).diagonal() * v",
            ),
            "the diagonal of H only",
        ),
        (
            "a Variable",
            _hvp(
                _FIRST,
                "(h,) = grad((g * v).sum(), [x])",
                "return h or Variable(torch.zeros_like(v))",
            ),
            "gave a Variable, expected a Tensor",
        ),
        (
            "torch's whole Hessian",
            _hvp("return torch.autograd.functional.hessian(f, x.value) @ v"),
            "uses hessian, which does what you are asked to write",
        ),
        (
            "v is used up",
            _hvp(
                _FIRST,
                "(h,) = grad((g * v.clone()).sum(), [x])",
                "v.zero_()",
                "return torch.zeros_like(v) if h is None else h.value",
            ),
            "changed x or v",
        ),
        (
            "divided by its length",
            _hvp(
                _FIRST,
                "(h,) = grad((g * (v / v.norm())).sum(), [x])",
                "return torch.zeros_like(v) if h is None else h.value * v.norm()",
            ),
            "f mixed, v = 0, n = 3: the product is",
        ),
        (
            "not a number",
            _hvp(_FIRST, "(h,) = grad(g * v, [x])", "return h.value"),
            "grad needs a loss that is one number",
        ),
    ],
    "01.4": [
        ("only half mended", _norm(*_own_norm("dL_dr / size - x")), "which results of that row"),
        (
            "the sign",
            _norm(*_own_norm("(dL_dr + r * (dL_dr * r).mean(1, keepdim=True)) / size")),
            "the gradient of x is",
        ),
        (
            "right for rows of three",
            _norm(*_own_norm("(dL_dr - r * (dL_dr * r).sum(1, keepdim=True) / 3) / size")),
            "rms_norm of 3 rows: the gradient of x is",
        ),
        (
            "another value",
            _norm("size = (x * x).sum(1, keepdim=True) ** 0.5", "return x / size"),
            "The values were right before",
        ),
        (
            "the wrong one mended",
            _changed("01.4", ("dL_dr - r.exp() * dL_dr.sum", "dL_dr - r * dL_dr.sum")),
            "This one was right before",
        ),
    ],
}
