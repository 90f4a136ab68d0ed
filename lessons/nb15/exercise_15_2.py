"""15.2: the layout of a matrix product."""

from collections.abc import Callable
from itertools import product

import torch
from layouts import PARTIAL, REPLICATE, VARYING, Layout, LayoutError, shard

from course_utils.checking.calls import line_of
from course_utils.checking.compare import Wrong

TITLE = "the layout of a matrix product"
PROVEN = (
    "25 pairs of layouts; where values decide, by the product of random integers on 2 and 3",
    "ranks: what you accept is what one process computes, and nothing sound is refused",
)
OURS = '''"""Tensors with a layout and no values. They check a program before any rank starts."""

from collections.abc import Callable
from dataclasses import dataclass

from layouts import PARTIAL, REPLICATE, VARYING, Layout, LayoutError, shard


def matmul_layout(a: Layout, b: Layout) -> Layout:
    """The layout of a @ b, (rows, inner) @ (inner, columns), if each rank multiplies what it has.

    Raises:
        LayoutError: no layout describes the result.
    """
    rules = {
        (REPLICATE, REPLICATE): REPLICATE,
        (shard(0), REPLICATE): shard(0),  # its own rows
        (REPLICATE, shard(1)): shard(1),  # its own columns
        (shard(1), shard(0)): PARTIAL,  # its own part of the sum over the inner dimension
        (PARTIAL, REPLICATE): PARTIAL,  # (a0 + a1) b = a0 b + a1 b
        (REPLICATE, PARTIAL): PARTIAL,
    }
    if (a, b) in rules:
        return rules[a, b]
    if VARYING in (a, b) and PARTIAL not in (a, b):
        return VARYING
    raise LayoutError(f"{a} @ {b}: the product of the parts is no part of the product")


@dataclass(frozen=True)
class Typed:
    """A matrix with a layout, and without values."""

    layout: Layout

    def __matmul__(self, other: "Typed") -> "Typed":
        return Typed(matmul_layout(self.layout, other.layout))

    def __add__(self, other: "Typed") -> "Typed":
        return Typed(same("+", self.layout, other.layout))

    def __mul__(self, other: "Typed") -> "Typed":
        a, b = self.layout, other.layout
        if {a, b} == {PARTIAL, REPLICATE}:
            return Typed(PARTIAL)  # (a0 + a1) b = a0 b + a1 b
        return Typed(same("*", a, b, sums=False))

    def __truediv__(self, other: "Typed") -> "Typed":
        if (self.layout, other.layout) == (PARTIAL, REPLICATE):
            return Typed(PARTIAL)
        return Typed(same("/", self.layout, other.layout, sums=False))

    def relu(self) -> "Typed":
        if self.layout == PARTIAL:
            raise LayoutError("relu(Partial): relu(a0 + a1) is not relu(a0) + relu(a1)")
        return self

    def sum(self, dim: int) -> "Typed":
        """The sum over one dimension, which stays with size 1."""
        return Typed(PARTIAL) if self.layout == shard(dim) else self

    @property
    def T(self) -> "Typed":
        cut = self.layout.dim
        return self if cut is None else Typed(shard(1 - cut))


def same(sign: str, a: Layout, b: Layout, sums: bool = True) -> Layout:
    """The layout of an operation on values at the same place."""
    if a == b and (sums or a != PARTIAL):
        return a
    if VARYING in (a, b) and PARTIAL not in (a, b):
        return VARYING
    raise LayoutError(f"{a} {sign} {b}: on several ranks this is not what one process computes")


def all_reduce(x: Typed) -> Typed:
    """Adds up what the ranks have."""
    if x.layout != PARTIAL:
        raise LayoutError(f"all_reduce({x.layout}): there is no sum to finish")
    return Typed(REPLICATE)


def update(parameter: Typed, gradient: Typed) -> Typed:
    """An optimizer's step: the gradient has to have the parameter's layout."""
    if parameter.layout != gradient.layout:
        raise LayoutError(f"a {parameter.layout} parameter with a {gradient.layout} gradient")
    return parameter


def check_program(program: Callable[..., Typed], *layouts: Layout) -> str:
    """The layout of what a program returns, or the sentence that refuses it."""
    try:
        return str(program(*map(Typed, layouts)).layout)
    except LayoutError as error:
        return f"REFUSED  {error}"
'''
KNOWN = (REPLICATE, shard(0), shard(1), PARTIAL)


def cases(matmul_layout: Callable) -> None:
    """The rule for all pairs of five layouts, each judged by values on pretended ranks."""
    torch.manual_seed(0)
    for a, b in product((*KNOWN, VARYING), repeat=2):
        look(matmul_layout, a, b)


def look(matmul_layout: Callable, a: Layout, b: Layout) -> None:
    """Judge the answer for one pair."""
    call = f"matmul_layout({a}, {b})"
    if VARYING in (a, b):
        other = b if a == VARYING else a
        expected = None if other == PARTIAL else VARYING
        hint = "Own values times anything are own values, unless the other is an unfinished sum."
    else:
        expected = sound(a, b)
        hint = "Write down the product for two ranks. What does each rank get, and how do the "
        hint += "parts make the whole?"
        if (a, b) == (PARTIAL, PARTIAL):
            hint = "(a0 + a1)(b0 + b1) has four products. Which two does nobody compute?"
        elif (a, b) == (shard(1), shard(0)):
            hint = "Each rank has a part of the inner dimension. What do the parts have to become?"
    got = answer_of(matmul_layout, call, a, b)
    if got != expected:
        said = "raised LayoutError" if got is None else f"returned {got}"
        wanted = "a LayoutError" if expected is None else str(expected)
        raise Wrong(f"{call} {said}, expected {wanted}", hint)


def answer_of(matmul_layout: Callable, call: str, a: Layout, b: Layout) -> Layout | None:
    """What the student's function says; None where it refuses."""
    try:
        found = matmul_layout(a, b)
    except LayoutError:
        return None
    except NotImplementedError:
        raise
    except Exception as error:
        said = f"{call} raised {type(error).__name__}: {error}{line_of(error, matmul_layout)}"
        raise Wrong(said, "Who calls your rule expects a layout, or a LayoutError.") from None
    if found is None:
        raise Wrong(
            f"{call} returned None",
            "Return a layout, or raise a LayoutError: nobody looks at a None.",
        )
    if type(found) is not Layout:  # it may say of itself that it equals every layout
        said = f"{call} returned {type(found).__name__} {found!r:.60}"
        raise Wrong(said, "Return one of the layouts, or raise a LayoutError.")
    return found


def parts_of(whole: torch.Tensor, layout: Layout, ranks: int) -> list[torch.Tensor]:
    """What each rank has of a matrix."""
    if layout == REPLICATE:
        return [whole] * ranks
    if layout == PARTIAL:
        some = [torch.randint(-9, 9, whole.shape) for _ in range(ranks - 1)]
        return [*some, whole - sum(some)]
    return list(whole.chunk(ranks, layout.dim))


def joined(parts: list[torch.Tensor], layout: Layout) -> torch.Tensor | None:
    """The matrix that parts stand for under a layout; None if they stand for none."""
    if layout == REPLICATE:
        return parts[0] if all(map(parts[0].equal, parts)) else None
    return sum(parts) if layout == PARTIAL else torch.cat(parts, layout.dim)


def sound(a: Layout, b: Layout) -> Layout | None:
    """The layout under which the ranks' products stand for the product, on 2 and on 3 ranks."""
    found = set(KNOWN)
    for ranks in (2, 3):
        x, y = torch.randint(-9, 9, (6, 6)), torch.randint(-9, 9, (6, 6))
        pairs = zip(parts_of(x, a, ranks), parts_of(y, b, ranks), strict=True)
        try:
            parts = [one @ other for one, other in pairs]
        except RuntimeError:  # the shapes do not fit
            return None
        for layout in KNOWN:
            whole = joined(parts, layout)
            if whole is None or whole.shape != (6, 6) or not whole.equal(x @ y):
                found.discard(layout)
    return next((layout for layout in KNOWN if layout in found), None)


LAST_RULE = "(REPLICATE, PARTIAL): PARTIAL,"
OTHERWISE = """if (a, b) in rules:
        return rules[a, b]
    if VARYING in (a, b) and PARTIAL not in (a, b):"""

WRONG = [
    (
        "two partial ones",
        LAST_RULE,
        f"{LAST_RULE} (PARTIAL, PARTIAL): PARTIAL,",
        "four products",
    ),
    (
        "an inner dimension that is replicated",
        "shard(0)): PARTIAL",
        "shard(0)): REPLICATE",
        "part of the inner dimension",
    ),
    (
        "partial is refused everywhere",
        "(PARTIAL, REPLICATE): PARTIAL,",
        "",
        "expected Partial",
    ),
    (
        "rows and columns",
        LAST_RULE,
        f"{LAST_RULE} (shard(0), shard(1)): shard(0),",
        "expected a LayoutError",
    ),
    (
        "columns become rows",
        "shard(1)): shard(1)",
        "shard(1)): shard(0)",
        "expected Shard(1)",
    ),
    (
        "varying and partial",
        OTHERWISE,
        "if (a, b) in rules:\n    return rules[a, b]\nif VARYING in (a, b):",
        "unless the other is an unfinished sum",
    ),
    (
        "None where no layout fits",
        'raise LayoutError(f"{a} @ {b}: the product',
        'return None\nraise LayoutError(f"{a} @ {b}: the product',
        "returned None",
    ),
    (
        "varying is refused",
        OTHERWISE,
        "if (a, b) in rules:\n    return rules[a, b]\nif False:",
        "Own values times anything",
    ),
    (
        "a partial with columns",
        LAST_RULE,
        f"{LAST_RULE} (PARTIAL, shard(1)): PARTIAL,",
        "expected a LayoutError",
    ),
    (
        "a ValueError",
        'raise LayoutError(f"{a} @ {b}: the product',
        'raise ValueError(f"{a} @ {b}: the product',
        "expects a layout, or a LayoutError",
    ),
    ("a table alone", OTHERWISE, "if True:\n    return rules[a, b]\nif False:", "raised KeyError"),
    (
        "returns the error",
        'raise LayoutError(f"{a} @ {b}: the product',
        'return LayoutError(f"{a} @ {b}: the product',
        "Return one of the layouts",
    ),
    (
        "equal to everything",
        "->",
        'lambda layout: type("Any", (tuple,), {"__eq__": lambda *_: True, "__hash__": None})()',
        "Return one of the layouts",
    ),
    ("a name", "->", "str", "Return one of the layouts"),
]
RIGHT = [
    (
        "by cases",
        """
from layouts import PARTIAL, REPLICATE, VARYING, LayoutError, shard

def matmul_layout(a, b):
    if b == REPLICATE and a in (REPLICATE, shard(0), PARTIAL):
        return a
    if a == REPLICATE and b in (shard(1), PARTIAL):
        return b
    if (a, b) == (shard(1), shard(0)):
        return PARTIAL
    if VARYING in (a, b) and PARTIAL not in (a, b):
        return VARYING
    raise LayoutError(f'{a} @ {b}')
""",
    )
]
