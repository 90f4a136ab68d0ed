"""Calls a student's function with a time limit, and watches its side effects."""

import contextlib
import copy
import io
import linecache
import random
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from course_utils.checking.compare import Wrong

# torch is imported in the functions below: `./run.sh list` works where there is none.

DEADLINE = 5.0  # seconds that one call of a student's function may take
printed: list[str] = []  # what the answer printed in its last call or its last run


class _TooLong(BaseException):
    """A call took too long. No `except Exception` in the student's code can catch this."""


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
        Wrong: the function raised something else, did not return in time, or changed its arguments
            or the global random state.
    """
    before, state = None if may_change else copy.deepcopy(arguments), random_state()
    try:
        with _heard(), _bounded(call):
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
    if random_state() != state:
        hint = "Other code draws from it too. Make a torch.Generator of your own."
        raise Wrong(f"{call} changed the global random state", hint)
    return answer


def refused(call: str, function: Callable, *arguments: Any, hint: str = "") -> None:
    """Raise `Wrong` unless the student's function raises a ValueError, or a subclass of it."""
    try:
        with _heard(), _bounded(call):
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


@contextlib.contextmanager
def _heard() -> Iterator[None]:
    """Keep what the answer prints, to show it once and not for every call."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            yield
    finally:
        printed[:] = out.getvalue().splitlines()


@contextlib.contextmanager
def _bounded(call: str) -> Iterator[None]:
    """End a call that takes too long. A signal does it, so this works only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, over)
    # The alarm repeats, because a bare `except:` of the student's may catch the first one.
    signal.setitimer(signal.ITIMER_REAL, DEADLINE, 0.1)
    try:
        yield
    except _TooLong as stop:
        where = stop.__traceback__.tb_next
        lines = [frame.lineno for frame in traceback.extract_tb(where)] if where else []
        raise Wrong(
            f"{call} did not return within {DEADLINE:g} s",
            "Which loop never ends?" + f" It was last in line {lines[-2]}." * (len(lines) > 1),
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def random_state() -> tuple[bytes, Any]:
    """The state of the global random generators."""
    import torch

    return torch.get_rng_state().numpy().tobytes(), random.getstate()


def same(one: Any, other: Any) -> bool:
    """Whether arguments, tensors included, are bit for bit what they were."""
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and torch.equal(_bytes(one), _bytes(other))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (int, float, str, type(None), torch.Size)):
        return one == other
    return True  # a model, a tape: not a value


def _bytes(tensor: Any) -> Any:
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
