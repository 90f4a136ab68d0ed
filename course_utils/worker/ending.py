"""Records how a rank ended, from what was known at its start.

A script may change the environment, close streams, replace `print` or fork: its rank, its folder
and its log stay those that `begin` was given.
"""

import contextlib
import functools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LAST_WORDS = 0.2  # seconds
LONGEST = 2**63  # a larger exit status does not fit the system's number

_exit = os._exit
_rank = 0  # the pid of this rank; its children have others
_log = ""  # its stderr


def begin(folder: Path, rank: int) -> None:
    """This process is the rank with that pid and folder, whatever its script does."""
    global _rank, _log
    from course_utils import worker

    _rank, _log = rank, str(folder / "stderr.log")
    worker.write_events_to(folder / "events.jsonl")
    os._exit = functools.partial(_noting, os._exit, "os._exit")
    for name in ("execv", "execve"):
        setattr(os, name, functools.partial(_noting, getattr(os, name), f"os.{name}"))


def recorded(run: Callable[[], None]) -> int:
    """Call `run`, record how that ended, and return the exit status."""
    errors: list[BaseException] = []
    threading.excepthook = functools.partial(_note_thread_error, errors)
    try:
        run()
        if errors:  # the script went on, but its thread did not do its work
            raise errors[0]
    except SystemExit as stop:
        status = _exit_status(stop)
        _record("end", {"how": "exited", "status": status, "said": _description(stop)})
        return status
    except BaseException as error:
        _record("end", {"how": "raised", "status": 1, **_description(error)})
        _say(_formatted(error))
        sys.last_type = type(error)  # as Python does when an error ends a script
        # As soon as one rank is gone, torchrun ends the others. First let them record their own
        # failures, and don't let them fail just because this rank is gone.
        if os.getpid() == _rank:
            sleep(LAST_WORDS)
        return 1
    _record("end", {"how": "finished", "status": 0})
    return 0


def _record(kind: str, data: dict[str, Any]) -> None:
    """Record an event of the rank itself: a child that it forked ends, too, and is no rank."""
    from course_utils import worker

    if os.getpid() == _rank:
        with contextlib.suppress(OSError):  # the run's folder was removed
            worker._emit(kind, data)


def _noting(leave: Callable, name: str, *arguments: Any) -> Any:
    """Record that the script leaves this way, without Python's end, and let it."""
    to = arguments[0]
    _record("left", {"by": name, "to": os.fsdecode(to) if isinstance(to, bytes) else str(to)})
    return leave(*arguments)


def _say(text: str) -> None:
    """Write to the rank's log, even if the script closed or replaced its streams."""
    data = (text.rstrip("\n") + "\n").encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        log = os.open(_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while data:
                data = data[os.write(log, data) :]
        finally:
            os.close(log)


def _note_thread_error(errors: list[BaseException], raised: Any) -> None:
    """Record an exception that ended a thread; Python would only print it."""
    if raised.exc_type is not SystemExit:
        errors.append(raised.exc_value)
        _record("thread", _description(raised.exc_value))
        name = raised.thread.name if raised.thread else "?"
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
    frames = [
        {"file": frame.filename, "line": frame.lineno, "function": frame.name}
        for frame in first.stack
    ]
    if isinstance(error, SyntaxError) and error.filename and isinstance(error.lineno, int):
        frames.append({"file": error.filename, "line": error.lineno, "function": "<module>"})
    notes = getattr(first, "__notes__", None)
    notes = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return {
        "type": type(error).__name__,
        "message": "\n".join([str(first), *notes]),  # as Python prints it
        "frames": frames,
        "behind": [str(part) for part in behind],
        "call": failed_call(error),
    }


def failed_call(error: BaseException) -> dict[str, Any] | None:
    """The call of torch.distributed that raised `error`, or an exception that led to it, if any."""
    seen: set[int] = set()
    part: BaseException | None = error
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        if call := part.__dict__.get("_course_call"):
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
