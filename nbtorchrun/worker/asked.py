"""What a rank answers when it is asked how it stands: what it waits for, handles, and lives on.

A signal can't ask that. Python's handlers wait until a collective returns, and faulthandler knows
neither exceptions nor the names of threads. So a thread of the rank waits until someone opens its
pipe. It can run while a collective waits.
"""

import _thread
import contextlib
import json
import multiprocessing.process
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns
from types import FrameType
from typing import Any

from nbtorchrun.worker import ending, unended
from nbtorchrun.worker.asking import PIPE

ANSWER = "answer.json"  # in a rank's folder
RECORDER = "TORCH_FR_BUFFER_SIZE"  # how many collectives torch's flight recorder keeps
KEPT = "2000"  # as by default with NCCL; with gloo it keeps none by default
JOIN = threading.Thread.join.__code__
HERE = os.path.dirname(os.path.abspath(__file__))


def listen(folder: Path, students: tuple[str, ...]) -> None:
    """Answer from now on; let torch record what gloo has not ended.

    Args:
        folder: the rank's.
        students: the folders whose files are the student's.
    """
    if RECORDER not in os.environ:
        os.putenv(RECORDER, KEPT)  # for torch alone: the script finds its environment as it was
    _remember_starts(students)
    with contextlib.suppress(OSError):  # a file system without pipes
        os.mkfifo(folder / PIPE, 0o600)
        _thread.start_new_thread(_answer_again_and_again, (folder, students))


def _answer_again_and_again(folder: Path, students: tuple[str, ...]) -> None:
    new = folder / f"{ANSWER}.new"
    while True:
        with contextlib.suppress(OSError), open(folder / PIPE, "rb") as pipe:
            pipe.read()  # until whoever asks has closed it
        with contextlib.suppress(Exception):  # the run's folder was removed, or torch has changed
            new.write_text(json.dumps(_answer(students)))
            os.replace(new, folder / ANSWER)  # nobody reads half of it


def _answer(students: tuple[str, ...]) -> dict[str, Any]:
    frames, main = sys._current_frames(), threading.main_thread()
    raised: Any = sys._current_exceptions().get(main.ident)
    error = raised[1] if isinstance(raised, tuple) else raised  # a tuple up to Python 3.11
    joins = (f for f in _outward(frames.get(main.ident)) if f.f_code is JOIN)
    joined = next((frame.f_locals.get("self") for frame in joins), None)
    children = multiprocessing.process._children  # `active_children` would reap those that ended
    return {
        "at": monotonic_ns(),
        "stage": ending.stage,
        "frames": [_place(frame) for frame in _outward(frames.get(main.ident))],
        "handling": ending.in_flight(error),
        "waits": _waits(main, frames.get(main.ident), students),
        "threads": [
            {
                "name": thread.name,
                "frames": [_place(frame) for frame in _outward(frames.get(thread.ident))],
                "started": getattr(thread, "_nbtorchrun_started", None),
            }
            for thread in threading.enumerate()
            if thread is not main and (not thread.daemon or thread is joined)
        ],
        "children": [
            {
                "name": child.name,
                "pid": child.pid,
                "started": getattr(child, "_nbtorchrun_started", None),
            }
            for child in list(children)
            if not child.daemon and _runs(child.pid)
        ],
    }


def _runs(child: int) -> bool:
    """Whether a child process has not ended; whoever waits for its end still gets it."""
    with contextlib.suppress(ChildProcessError):  # somebody has
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that led to it."""
    while frame:
        yield frame
        frame = frame.f_back


def _place(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno


def students_place(frame: FrameType | None, students: tuple[str, ...]) -> tuple[str, int] | None:
    """The innermost line of the student's code that led to `frame`, or None."""
    own = (each for each in _outward(frame) if each.f_code.co_filename.startswith(students))
    return next(map(_place, own), None)


def started_at(students: tuple[str, ...]) -> tuple[str, int] | None:
    """The student's line that started this thread; without one, where the main thread is."""
    me = threading._active.get(threading.get_ident())  # `current_thread` would make up one
    if place := getattr(me, "_nbtorchrun_started", None):
        return place
    return students_place(sys._current_frames().get(threading.main_thread().ident), students)


def _remember_starts(students: tuple[str, ...]) -> None:
    """Let each thread and each child process know the student's line that started it."""
    for kind in (threading.Thread, multiprocessing.process.BaseProcess):
        kind.start = _remembering(kind.start, students)


def _remembering(start: Any, students: tuple[str, ...]) -> Any:
    def starting(self: Any) -> Any:
        place = students_place(sys._getframe(1), students) or started_at(students)
        self._nbtorchrun_started = place
        return start(self)

    starting.__name__, starting.__doc__ = start.__name__, start.__doc__
    return starting


def _waits(thread: threading.Thread, frame: FrameType | None, students: tuple) -> Any:
    """The collective of gloo in which a thread waits, also if C++ called it; or None."""
    torch = sys.modules.get("torch")
    if not frame or not torch or not _sleeps(thread):
        return None
    inside = (os.path.dirname(torch.__file__) + os.sep, HERE + os.sep)
    if not frame.f_code.co_filename.startswith(inside):
        return None  # it began a collective some time ago, and does something else
    from torch._C import _distributed_c10d as c10d

    if not hasattr(c10d, "_dump_fr_trace"):
        return None  # as in a build without gloo's recorder
    recorded = unended.entries(c10d._dump_fr_trace(True, True, True))
    own = [entry for entry in recorded if entry.get("thread_id", "") in ("", str(thread.ident))]
    found = unended.oldest(own, students)
    return found and found | {"place": students_place(frame, students) or found["place"]}


def _sleeps(thread: threading.Thread) -> bool:
    """Whether the thread gets no core because it wants none; also if that is not known."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/self/task/{thread.native_id}/stat").read_bytes()
        return status.rpartition(b")")[2].split()[0] in (b"S", b"D")
    return True
