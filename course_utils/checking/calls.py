"""Calls a student's function, and watches its side effects."""

import copy
import linecache
import random
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checking.compare import Wrong
from course_utils.checking.values import is_plain

# torch is imported in the functions below: `./run.sh list` works where there is none.

_before: list[Any] = []  # what the call before returned; what its lists, dicts and arrays held
printed: list[str] = []  # what the answer printed in its last run


def called(
    call: str, function: Callable, *arguments: Any, hint: str = "", may_change: bool = False
) -> Any:
    """What the student's function returns.

    Args:
        call: how a message names the call.
        function: the student's.
        *arguments: what it is called with; compared afterwards with what they were.
        hint: the question that fits an exception.
        may_change: whether it may change them.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the function raised something else, or changed its arguments, the global random
            state, or the list or array that the call before had returned.
    """
    before, state = None if may_change else copy.deepcopy(arguments), random_state()
    try:
        answer = function(*arguments)
    except SystemExit:
        raise Wrong(f"{call} ended with an exit", "Return, and let the caller go on.") from None
    except Exception as error:
        # Stubs raise it bare; PyTorch raises it too, with a message.
        if isinstance(error, Wrong) or (isinstance(error, NotImplementedError) and not str(error)):
            raise
        raise Wrong(f"{call} raised {_named(error)}{line_of(error, function)}", hint) from None
    if not may_change and not same(before, arguments):
        raise Wrong(f"{call} changed its arguments", "The caller may still need them.")
    if _before and not same(*_before):
        hint = "The caller may still hold the first answer. Make a new one in every call."
        raise Wrong(f"{call} changed what the call before had returned", hint)
    _before[:] = [answer, _copied(answer)]
    if random_state() != state:
        hint = "Other code draws from it too. Make a torch.Generator of your own."
        raise Wrong(f"{call} changed the global random state", hint)
    return answer


def _copied(value: Any) -> Any:
    """Lists, tuples, dicts and arrays anew, with the same values in them."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (list, tuple)):
        return list(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value


def refused(call: str, function: Callable, *arguments: Any, hint: str = "") -> None:
    """Raise `Wrong` unless the student's function raises a ValueError, or a subclass of it."""
    try:
        answer = function(*arguments)
    except ValueError:
        return
    except Exception as error:
        if isinstance(error, Wrong):
            raise
        found, line = f"raised {_named(error)}", line_of(error, function)
    else:
        found, line = f"returned {answer!r}", ""
        kind = answer if isinstance(answer, type) else type(answer)
        if issubclass(kind, ValueError):
            hint = "You returned the error: raise it instead."
    raise Wrong(f"{call} {found}, expected a ValueError{line}", hint) from None


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def line_of(error: BaseException, function: Callable) -> str:
    """The line of the student's code that an exception came through last; '' if none."""
    code = getattr(function, "__code__", None)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if code and frame.filename == code.co_filename:
            source = linecache.getline(frame.filename, frame.lineno).strip()
            first = code.co_firstlineno - 1 if "ipykernel" in frame.filename else 0
            return f"\nline {frame.lineno - first}: {source}".rstrip(": ")
    return ""


def random_state() -> tuple[bytes, Any]:
    """The state of the global random generators."""
    import torch

    return torch.get_rng_state().numpy().tobytes(), random.getstate()


def same(one: Any, other: Any) -> bool:
    """Whether arguments, tensors included, are bit for bit what they were."""
    import torch

    if one is other:
        return True  # a nan too, which equals nothing
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if not (is_plain(one) and is_plain(other)):
            return True  # on the meta device, sparse: no values in memory
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and torch.equal(_bytes(one), _bytes(other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (int, float, str, type(None), torch.Size)):
        return one == other
    return True  # a model, a tape: not a value


def _bytes(tensor: Any) -> Any:
    import torch

    # Not `contiguous`: it leaves the stride of a single value, and `view` refuses that.
    whole = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    return whole.reshape(-1).view(torch.uint8)
