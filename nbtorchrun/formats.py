"""How numbers and signals are written, in notebooks, terminals and tables alike."""

import math
import signal
from collections.abc import Mapping
from typing import Any


def number(value: Any) -> str:
    """A value in few digits: `0.333333`, `[1, 2]`.

    Rounding errors differ between CPUs, so a value below 1e-6 is rounded up to a power of ten.
    """
    if isinstance(value, float) and 0 < abs(value) < 1e-6:
        return f"{10.0 ** math.ceil(math.log10(abs(value)) - 1e-9):.0e}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(number, value)) + "]"
    return str(value)


def values(named: Mapping[str, Any]) -> str:
    """Named values on one line: `sent 24.0   received 8.0`."""
    return "   ".join(f"{name} {number(value)}" for name, value in named.items())


def measured(worst: float, bound: float) -> str:
    """The worst value of a claim: `< 0.05` if it was only rounded up to its bound."""
    rounded = worst and worst <= bound and number(worst) == number(bound)
    return "< " * bool(rounded) + number(worst)


def rate(amount: float) -> str:
    """A rate: `87,746` or `3.4`."""
    return f"{amount:,.{0 if amount >= 100 else 1}f}"


def size(count: float) -> str:
    """A number of bytes with its unit: `24.0 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.{0 if unit == 'B' else 1}f} {unit}"


def signal_name(number: int) -> str:
    """A signal by its name, as `SIGKILL`, or by its number: most real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
