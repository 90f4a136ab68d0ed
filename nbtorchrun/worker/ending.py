"""Records how a rank ended, from what was known at its start.

A script may change the environment, close streams, replace `print` or fork: its rank, its folder
and its log stay those that `begin` was given.
"""

import contextlib
import functools
import itertools
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns, sleep
from typing import Any

from nbtorchrun.worker import asking, events

HERE = os.path.dirname(os.path.abspath(__file__))
LAST_WORDS = 0.2  # seconds
LONGEST = 2**63  # a larger exit status does not fit the system's number

HANDLING = "handling.json"  # in a rank's folder: what it handled at its last call, if anything
NO_ERRORS = GeneratorExit, StopIteration, StopAsyncIteration  # which Python itself handles

stage = "script"  # then "ending": threads, children, exit handlers; then "ended"
_rank = 0  # the pid of this rank; its children have others
_folder = Path()
_inherited: set[int] = set()  # the inodes of what was open when the rank began
_over = ""  # a file that is there once the launcher ends the ranks
_numbers = itertools.count(1)  # of the exceptions that the rank handled during a call
_handled = 0  # the one in `HANDLING`


def begin(folder: Path, rank: int) -> None:
    """This process is the rank with that pid and folder, whatever its script does."""
    global _rank, _folder, _over, _inherited
    from nbtorchrun.worker.guards import OVER

    _rank, _folder, _over = rank, folder, str(folder.parent / OVER)
    _inherited = set(map(_inode, _descriptors()))
    events.write_events_to(folder)
    os._exit = functools.partial(_noting, os._exit, "os._exit")
    for name in ("abort", "execv", "execve"):
        setattr(os, name, functools.partial(_noting, getattr(os, name), f"os.{name}"))


def recorded(run: Callable[[], None]) -> int:
    """Call `run`, record how that ended, and return the exit status."""
    global stage
    errors: list[BaseException] = []
    _watch_threads(errors)
    try:
        run()
        if errors:  # the script went on, but its thread did not do its work
            raise errors[0]
    except SystemExit as stop:
        status = _exit_status(stop)
        said = {"said": _description(stop), "handling": _handled_at(stop)}
        _record("end", {"how": "exited", "status": status, **said})
        if status:
            _let_the_others_speak()
        return status
    except BaseException as error:
        since = error.__dict__.get("_nbtorchrun_since")
        _record("end", {"how": "raised", "status": 1, "since": since, **_description(error)})
        _say(_formatted(error))
        sys.last_type = type(error)  # as Python does when an error ends a script
        _let_the_others_speak()
        # As soon as one rank is gone, torchrun ends the others. First let them record their own
        # failures, and don't let them fail just because this rank is gone.
        if os.getpid() == _rank:
            sleep(LAST_WORDS)
        return 1
    finally:
        stage = "ending"
    _record("end", {"how": "finished", "status": 0})
    return 0


def _descriptors() -> list[int]:
    return list(map(int, os.listdir("/dev/fd")))


def _inode(number: int) -> int:
    """What a descriptor stands for, as a number; 0 if it has been closed."""
    with contextlib.suppress(OSError):
        return os.fstat(number).st_ino
    return 0


def over() -> None:
    """All is done: close the connections, as the end of the process would, which may come later.

    Whatever still refers to a process group, as a model under DDP does, keeps its connections open.
    The ranks that wait for this one would wait on.
    """
    global stage
    stage = "ended"
    if os.getpid() != _rank:
        return  # a child that the rank forked shares its connections
    for number in _descriptors():
        if _inode(number) in _inherited:
            continue  # of the process that forked the rank: as torchrun's, to its store
        with (
            contextlib.suppress(OSError),  # no socket
            socket.socket(fileno=os.dup(number)) as connection,
        ):
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.getpeername()  # raises where gloo listens: its thread would abort
                connection.shutdown(socket.SHUT_RDWR)


def _let_the_others_speak() -> None:
    """Have them write down how they stand, before torchrun ends them because this rank failed."""
    if os.getpid() == _rank and not os.path.exists(_over):
        asking.ask_others(_folder)


def in_flight(error: BaseException | None, leaving: Any = None) -> dict[str, Any] | None:
    """`error`, which a `finally`, `except` or `__exit__` handles, as the verdict needs it.

    Args:
        error: None, or no error, gives None.
        leaving: the traceback of what left that handler, if it was left.
    """
    handled = error
    if isinstance(error, GeneratorExit):
        from nbtorchrun.worker import loops

        error = loops.left_by(error)
    if handled is None or error is None or isinstance(error, NO_ERRORS):
        return None
    if isinstance(error, SystemExit) and not error.code:
        return None
    return {
        "number": handled.__dict__.get("_nbtorchrun_number", 0),
        "since": handled.__dict__.get("_nbtorchrun_since"),
        "handler": _handler(handled, leaving),
        **_description(error),
    }


def note_in_flight() -> int:
    """Write down the exception that this thread handles; return its number, 0 for none."""
    global _handled
    error = sys.exception()
    if error is None or os.getpid() != _rank or os.path.exists(_over):
        return 0
    if "_nbtorchrun_number" not in error.__dict__:  # there, whatever its type allows
        error.__dict__.update(_nbtorchrun_number=next(_numbers), _nbtorchrun_since=monotonic_ns())
    number = error.__dict__["_nbtorchrun_number"]
    if number != _handled:
        with contextlib.suppress(OSError):  # the run's folder was removed
            new = _folder / f"{HANDLING}.new"
            new.write_text(json.dumps(in_flight(error)))
            os.replace(new, _folder / HANDLING)
        _handled = number
    return number


def noting_in_flight(function: Callable) -> Callable:
    """Wrap a function whose call may be what ends the other ranks."""

    @functools.wraps(function)
    def noting(*arguments: Any, **named: Any) -> Any:
        note_in_flight()
        return function(*arguments, **named)

    return noting


def _handler(error: BaseException, leaving: Any) -> dict[str, Any] | None:
    """Where `error` is handled: a line of that block."""
    raised = error.__traceback__
    if raised is None:
        return None
    frame = raised.tb_frame
    while leaving and leaving.tb_frame is not frame:
        leaving = leaving.tb_next
    line = leaving.tb_lineno if leaving else frame.f_lineno
    return {"file": frame.f_code.co_filename, "line": line}


def _handled_at(stop: SystemExit) -> dict[str, Any] | None:
    """What was handled where the script called `sys.exit`."""
    return None if stop.__suppress_context__ else in_flight(stop.__context__, stop.__traceback__)


def _record(kind: str, data: dict[str, Any]) -> None:
    """Record an event of the rank itself: a child that it forked ends, too, and is no rank."""
    if os.getpid() == _rank and not os.path.exists(_over):  # then the launcher ends it
        with contextlib.suppress(OSError):  # the run's folder was removed
            events.emit(kind, data)


def _noting(leave: Callable, name: str, *arguments: Any, **named: Any) -> Any:
    """Record that the script leaves this way, without Python's end, and let it."""
    if os.getpid() == _rank:
        to = next(iter((*arguments, *named.values())), "")
        data = {"by": name, "to": os.fsdecode(to) if isinstance(to, bytes) else str(to)}
        stack = traceback.extract_stack(sys._getframe(1))
        data |= {"handling": in_flight(sys.exception()), "frames": _frames(stack)}
        _record("left", data)
        _let_the_others_speak()
    try:
        return leave(*arguments, **named)
    except BaseException:  # as if there is no such program: the script goes on
        _record("left", {})
        raise


def _say(text: str) -> None:
    """Write to the rank's log, even if the script closed or replaced its streams."""
    data = (text.rstrip("\n") + "\n").encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        log = os.open(_folder / "stderr.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while data:
                data = data[os.write(log, data) :]
        finally:
            os.close(log)


def _watch_threads(errors: list[BaseException]) -> None:
    """Record an exception that ends a thread, also where the script has its own `excepthook`."""
    ours = functools.partial(_note_thread_error, errors)
    threading.excepthook = ours
    make = threading._make_invoke_excepthook

    def making() -> Callable:
        invoke = make()

        def invoking(thread: threading.Thread) -> None:
            if threading.excepthook is not ours and not isinstance(sys.exception(), SystemExit):
                _record("unheard", {**_description(sys.exception()), "thread": thread.name})
            invoke(thread)

        return invoking

    threading._make_invoke_excepthook = making


def _note_thread_error(errors: list[BaseException], raised: Any) -> None:
    """Record an exception that ended a thread; Python would only print it."""
    if raised.exc_type is not SystemExit:
        errors.append(raised.exc_value)
        name = raised.thread.name if raised.thread else "?"
        _record("thread", {**_description(raised.exc_value), "thread": name})
        _say(f"in thread {name}: {_formatted(raised.exc_value)}")


def _exit_status(stop: SystemExit) -> int:
    """The process's exit status for `sys.exit(...)`, by Python's and the system's own rules."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF if -LONGEST <= stop.code < LONGEST else 0xFF
    _say(str(traceback.TracebackException.from_exception(stop)))
    return 1


def _chain(error: BaseException) -> Iterator[traceback.TracebackException]:
    """What Python prints of `error`, and of each exception that led to it; once, if in a ring."""
    part: Any = traceback.TracebackException.from_exception(error)
    while part:
        part.stack = traceback.StackSummary.from_list(_not_ours(part.stack))
        yield part
        part = part.__cause__ or part.__context__


def _formatted(error: BaseException) -> str:
    """The traceback as Python prints it, without the frames of this package."""
    whole, *_ = _chain(error)
    return "".join(whole.format())


def _not_ours(stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames that are not this package's."""
    return [frame for frame in stack if os.path.dirname(frame.filename) != HERE]


def _description(error: BaseException) -> dict[str, Any]:
    """`error` as the verdict needs it: type, message, frames, and what lies behind it."""
    first, *behind = _chain(error)
    frames = _frames(first.stack)
    if isinstance(error, SyntaxError) and error.filename and isinstance(error.lineno, int):
        frames.append({"file": error.filename, "line": error.lineno, "function": "<module>"})
    notes = getattr(first, "__notes__", None)
    notes = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return {
        "type": type(error).__name__,
        "message": "\n".join([str(first), *notes]),  # as Python prints it
        "frames": frames,
        "behind": [
            {"text": next(part.format_exception_only()).strip(), "frames": _frames(part.stack)}
            for part in behind
        ],
        "call": failed_call(error),
    }


def _frames(stack: list[traceback.FrameSummary]) -> list[dict[str, Any]]:
    return [{"file": each.filename, "line": each.lineno, "function": each.name} for each in stack]


def failed_call(error: BaseException) -> dict[str, Any] | None:
    """The call of torch.distributed that raised `error`, or an exception that led to it, if any."""
    seen: set[int] = set()
    part: BaseException | None = error
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        if call := part.__dict__.get("_nbtorchrun_call"):
            return call
        if _from_the_back_end(part):
            return {"name": "", "seconds": 0.0}
        part = part.__cause__ or part.__context__
    return None


def _from_the_back_end(error: BaseException) -> bool:
    """Whether gloo or NCCL raised it, as in a backward of DDP, where no call is logged.

    Known by the type, or by the file that raised it: gloo puts its own in front of its words.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not hasattr(distributed, "DistError"):
        return False
    if isinstance(error, distributed.DistError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    torchs = os.path.dirname(distributed.__path__[0]) + os.sep
    raised_in_torch = bool(frames) and frames[-1].filename.startswith(torchs)
    file = str(error).partition("]")[0] if type(error) is RuntimeError else ""
    return raised_in_torch and file.startswith("[") and "/gloo/" in file
