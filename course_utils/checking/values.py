"""Numbers, and nested lists of them: whether they agree within a tolerance."""

import math
import sys
from collections import deque
from collections.abc import Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

IN_ORDER = (list, tuple, range, deque, Iterator, KeysView, ValuesView)


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> bool:
    """Whether numbers, or nested lists of them, agree within `tolerance` of the larger values."""
    return _close(got, expected, tolerance, 0.1 * tolerance * min(1.0, _largest(expected)))


def _close(got: Any, expected: Any, relative: float, absolute: float) -> bool:
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return False
        if _are_floats(got) and _are_floats(expected):
            return _floats_close(np.array(got), np.array(expected), relative, absolute)
        return all(_close(a, b, relative, absolute) for a, b in zip(got, expected, strict=True))
    if not (is_number(expected) and is_number(got)):
        return type(got) is type(expected) and got == expected
    if math.isnan(expected):
        return math.isnan(got)
    return math.isclose(got, expected, rel_tol=relative, abs_tol=absolute)


def _floats_close(got: np.ndarray, expected: np.ndarray, relative: float, absolute: float) -> bool:
    """`math.isclose` of each pair; NaN is close to NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        bound = np.maximum(relative * np.maximum(abs(got), abs(expected)), absolute)
        near = np.isfinite(bound) & (abs(got - expected) <= bound)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    return bool(np.all(near | same))


def is_number(value: Any) -> bool:
    """Whether it is an int or a float, but not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Tensors as nested lists, numbers as they are, anything else as the name of its type."""
    if _is_array(value):  # NumPy's numbers too
        return value.tolist() if is_plain(value) else type_name(value)
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    if isinstance(value, (Fraction, Decimal, int)):
        return _plain_number(value)
    known = isinstance(value, (float, str, type(None)))
    return value if known else f"{type(value).__name__} object"


def _plain_number(value: Fraction | Decimal | int) -> Any:
    """Exact numbers as Python's; those beyond every float as words, which no number equals."""
    try:
        as_float = float(value)
    except OverflowError:
        return f"{type(value).__name__} beyond 1e308"
    return value if isinstance(value, int) else as_float


def _is_array(value: Any) -> bool:
    """Whether it is a tensor of torch, or an array or a number of NumPy."""
    torch = sys.modules.get("torch")  # who has no torch has no tensor
    return isinstance(value, (np.ndarray, np.generic)) or bool(torch and torch.is_tensor(value))


def type_name(value: Any) -> str:
    """`int`, `Tensor`, and of a special tensor what is special: `Tensor on the meta device`."""
    name, special = type(value).__name__, _special(value)
    return f"{name} on the meta device" if special == "meta" else f"{special} {name}".strip()


def is_plain(value: Any) -> bool:
    """Whether it is no special tensor: `tolist` gives numbers of what has such a method."""
    return not _special(value)


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, and no special one."""
    import torch

    return torch.is_tensor(value) and is_plain(value)


def _special(value: Any) -> str:
    """What makes a tensor special, as `meta`, `sparse_coo` or `complex`; '' for anything else."""
    if not _is_array(value):
        return ""
    for kind in ("meta", "nested", "quantized"):
        if getattr(value, f"is_{kind}", False):
            return kind
    if hasattr(value, "placements"):
        return "distributed"
    if "complex" in str(getattr(value, "dtype", "")):
        return "complex"
    return str(getattr(value, "layout", "")).removeprefix("torch.").replace("strided", "")


def lists_of_ints(values: Any) -> list[list[int]] | None:
    """Lists of whole numbers, or anything else in order, as lists; None if it is anything else.

    Numbers of NumPy and torch count. 2.5 and "2" do not, whatever `int` makes of them.
    """
    rows = listed(values)
    found = None if rows is None else [listed(row) for row in rows]
    if found is None or None in found:
        return None
    whole = [[as_number(each) for each in row] for row in found]
    return whole if all(type(n) is int for row in whole for n in row) else None


def as_number(value: Any) -> Any:
    """A number of NumPy or torch as Python's; anything else as it is."""
    return value.item() if _is_array(value) and value.ndim == 0 and is_plain(value) else value


def listed(values: Any) -> list[Any] | None:
    """The items of what has an order: a list, a generator, a dict's keys, a tensor, or the like.

    None for anything else. A generator gives its items once: use what this returns.
    """
    values = values.tolist() if _is_array(values) and is_plain(values) else values
    return list(values) if isinstance(values, IN_ORDER) else None


def _are_floats(values: Any) -> bool:
    """Whether it is a list of floats and of nothing else: NumPy then takes all of them at once."""
    return isinstance(values, (list, tuple)) and set(map(type, values)) == {float}


def _largest(values: Any) -> float:
    """The largest absolute value in nested lists, of the finite numbers; 0 if there are none."""
    if _are_floats(values):
        return np.abs(values).max(where=np.isfinite(values), initial=0.0)
    if isinstance(values, (list, tuple)):
        return max(map(_largest, values), default=0.0)
    return abs(values) if is_number(values) and math.isfinite(values) else 0.0


def flat(values: Any) -> list[Any]:
    """The values of nested lists, in order."""
    if not isinstance(values, (list, tuple)):
        return [values]
    if _are_floats(values):
        return list(values)
    return [inner for value in values for inner in flat(value)]


def shape(values: Any) -> tuple[int, ...]:
    """The lengths of nested lists, the outermost first."""
    if not isinstance(values, (list, tuple)):
        return ()
    return (len(values), *(shape(values[0]) if values else ()))


def form_hint(got: Any, expected: Any, tolerance: float, wanted: str = "") -> str:
    """The hint where the values are right, and only their shape or kind is not; else ''."""
    if not wanted and shape(got) == shape(expected):
        return ""
    if not close(flat(got), flat(expected), tolerance):
        return ""
    wanted = wanted or ("a number alone" if is_number(expected) else f"shape {shape(expected)}")
    return f"The values are right. Give them the form that was asked for: {wanted}."
