"""The process in which one answer is checked."""

import json
import os
import resource
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from course_utils import answers, paths
from course_utils.checking import check
from nbtorchrun.errors import InputError, LaunchError
from nbtorchrun.worker import guards

LARGEST_FILE = 64_000_000  # bytes; an answer that prints without end fills no disk
MOST_LINES, LONGEST_LINE = 60, 1000


def main(pipe: int) -> None:
    """Check the answer that stdin describes, and write what was found to a pipe.

    Args:
        pipe: its descriptor. A message is one line of JSON: `state` and `lines`.
    """
    _set_limits()
    asked = json.load(sys.stdin)
    guards.die_with_parent(asked["grader"])
    state, lines = judged(asked["number"], asked["text"])
    lines = [line[:LONGEST_LINE] for line in lines[:MOST_LINES] if line]
    message = {"state": state, "lines": lines}
    os.write(pipe, json.dumps(message).encode() + b"\n")
    os._exit(0)  # no thread or exit handler of the answer can hold it up


def _set_limits() -> None:
    """Limits for this process and all that it starts."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # where memory runs out, Linux ends these processes first
        Path("/proc/self/oom_score_adj").write_text("1000")


def judged(number: str, text: str) -> tuple[str, list[str]]:
    """The state of an answer, and what to say about it.

    Args:
        number: the exercise's.
        text: the answer, a Python file.

    Returns:
        "passed", "not yet", "to do" or "blocked", and the lines.
    """
    file = answers.file_of(number)
    if wrong := _unreadable(text, file):
        return "not yet", [wrong]
    try:
        (paths.workers() / file).write_text(text, encoding="utf-8")
        found = check.result(number)
    except (InputError, LaunchError) as error:
        return "blocked", [str(error)]
    except BaseException as error:  # SystemExit too
        return _failed(error)
    return found.state, [line for line in found.lines if line != check.way_out(number)]


def _unreadable(text: str, file: str) -> str:
    """Why Python cannot read an answer; '' if it can."""
    try:
        compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"SyntaxError: {error.msg} ({file}, line {error.lineno})"
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        return f"Python cannot read {file}: {_named(error)}"
    return ""


def _failed(error: BaseException) -> tuple[str, list[str]]:
    """Whose fault an error is that came out of a check: the answer's, or the check's own."""
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return "not yet", [
            "your code ended the check before it was done",
            "Is there an exit() in it?",
        ]
    if isinstance(error, (MemoryError, RecursionError)):
        return "not yet", [f"your code is nested too deeply, or too large: {_named(error)}"]
    if not (paths.home() / "workers").exists():
        return "not yet", ["your code removed the folder in which it was checked"]
    frames = traceback.extract_tb(error.__traceback__)
    if any(Path(frame.filename).is_relative_to(paths.home()) for frame in frames):
        return "not yet", [_named(error)]
    return "blocked", [f"the check itself failed: {_named(error)}"]


def _named(error: BaseException) -> str:
    """An error in one line, with the last line of the answer that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).is_relative_to(paths.home())]
    place = f" (line {lines[-1]} of the answer)" if lines else ""
    return f"{type(error).__name__}: {error}{place}"
