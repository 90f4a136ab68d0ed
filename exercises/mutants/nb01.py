"""Wrong answers to 01.2 to 01.4, and right ones of another kind."""

from course_utils.checking.registry import find

REPORT = '\nfrom course_utils.worker import report\nreport(case="mixed", loss=0.5)\n'
SIGMOID = "dL_dr * r * (1 - r)"
SECOND = "(product,) = grad((gradient * v).sum(), [x])"
RETURNED = "torch.zeros_like(v) if product is None else product.value"
ROWS = (
    SECOND,
    "unit = torch.eye(len(v), dtype=v.dtype)\n"
    "rows = [grad((gradient * row).sum(), [x])[0] for row in unit]\n"
    "product = rows[0]",
    "product.value",
)
SIZE = "(x * x).mean(1, keepdim=True) ** 0.5"


def _own_rule(gradient: str) -> tuple[str, ...]:
    """An rms_norm of 01.4 that writes its own chain rule."""
    rule = (
        f"def rule(dL_dr):\n    return [{gradient}]\n"
        "r = record(x.value / size, [x], rule)\nreturn r"
    )
    return SIZE, "x.value.square().mean(1, keepdim=True).sqrt()", "return x / size", rule


MUTANTS = {
    "01.2": [
        (
            "the derivative with x for s",
            SIGMOID,
            "dL_dr * x * (1 - x)",
            "with the result s alone",
        ),
        ("a factor is missing", SIGMOID, "dL_dr * r", "At x = 0, s = 1/2"),
        (
            "overflows",
            "r = record(",
            "return 1 / (1 + (-x).exp())\nr = record(",
            "0 times infinity",
        ),
        (
            "values in place of Variables",
            SIGMOID,
            "Variable(dL_dr.value * r.value * (1 - r.value))",
            "an operation on Variables",
        ),
        (
            "not on the tape",
            "return a * share",
            "return Variable(a.value * share)",
            "the gradient of a is None",
        ),
        (
            "of equal ones the second gets all",
            " + 0.5 * (a.value == b.value)",
            ".double()",
            "In the third, a and b are equal",
        ),
        ("the smaller one", "a.value > b.value", "a.value < b.value", "Work it out by hand"),
        (
            "a row taken again replaces its gradient",
            "return Variable(chosen) @ x",
            "def rule(dL_dr):\n"
            "    out = torch.zeros(x.shape, dtype=x.value.dtype)\n"
            "    out[index] = dL_dr.value\n"
            "    return [Variable(out)]\n"
            "return record(x.value[index], [x], rule)",
            "Row 2 was taken three times",
        ),
        (
            "as many rows as the largest index",
            "one_hot(index, x.shape[0])",
            "one_hot(index)",
            "From workers/exercise_01_2.py, line",
        ),
        (
            "the index is overwritten",
            "one_hot(index,",
            "one_hot(kept,",
            "chosen =",
            "kept = index.clone()\nindex.zero_()\nchosen =",
            "changed index",
        ),
        (
            "double precision, always",
            "x.value.sigmoid()",
            "x.value.double().sigmoid()",
            "expected float32",
        ),
    ],
    "01.3": [
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
    ],
    "01.4": [
        ("only half mended", *_own_rule("dL_dr / size - x"), "which results of that row"),
        (
            "the sign",
            *_own_rule("(dL_dr + r * (dL_dr * r).mean(1, keepdim=True)) / size"),
            "the gradient of x is",
        ),
        (
            "right for rows of three",
            *_own_rule("(dL_dr - r * (dL_dr * r).sum(1, keepdim=True) / 3) / size"),
            "rms_norm of 3 rows: the gradient of x is",
        ),
        ("another value", "x).mean(1", "x).sum(1", "The values were right before"),
        (
            "the wrong one mended",
            "dL_dr - r.exp() * dL_dr.sum",
            "dL_dr - r * dL_dr.sum",
            "This one was right before",
        ),
    ],
}

RIGHT = {
    "01.2": [("it reports values of its own", find("01.2").solution + REPORT)],
    "01.4": [
        (
            "right once, as asked",
            *_own_rule("(dL_dr - r.value * (dL_dr * r).mean(1, keepdim=True)) / size"),
        )
    ],
}
