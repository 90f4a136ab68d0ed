"""Numbers, and nested lists of them: whether they agree within a tolerance."""

import math
from typing import Any

import numpy as np


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
