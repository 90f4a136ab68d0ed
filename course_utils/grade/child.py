"""The process in which one answer is checked."""

import json
import linecache
import os
import resource
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from course_utils import paths
from course_utils.checking import check, refusals
from course_utils.checking.compare import Wrong
from course_utils.checking.registry import find
from course_utils.errors import InputError, LaunchError
from course_utils.notebook import answers

LARGEST_FILE = 64_000_000  # bytes; an answer that prints without end fills no disk
MOST_LINES, LONGEST_LINE = 60, 1000


def main(pipe: int) -> None:
    """Check the answer that stdin describes, and write what was found to a pipe.

    Args:
        pipe: its descriptor. A message is one line of JSON: `word`, `state` and `lines`.
    """
    _set_limits()
    asked = json.load(sys.stdin)
    state, lines = judged(asked["number"], asked["text"], asked["function"])
    lines = [line[:LONGEST_LINE] for line in lines[:MOST_LINES] if line]
    message = {"word": asked["word"], "state": state, "lines": lines}
    os.write(pipe, json.dumps(message).encode() + b"\n")
    os._exit(0)  # no thread or exit handler of the answer can hold it up


def _set_limits() -> None:
    """Limits for this process and all that it starts."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # where memory runs out, Linux ends these processes first
        Path("/proc/self/oom_score_adj").write_text("1000")


def judged(number: str, text: str, function: str) -> tuple[str, list[str]]:
    """The state of an answer, and what to say about it.

    Args:
        number: the exercise's.
        text: the answer, a Python file.
        function: the function in it that is to be checked; '' if the file is.

    Returns:
        "passed", "not yet", "to do" or "blocked", and the lines.
    """
    try:
        (paths.workers() / answers.file_of(number)).write_text(text, encoding="utf-8")
        found = check.result(number, _defined(number, text, function) if function else None)
    except Wrong as wrong:
        return "not yet", [wrong.message, wrong.hint]
    except (InputError, LaunchError) as error:
        return "blocked", [str(error)]
    except BaseException as error:  # SystemExit too
        return _failed(error)
    return found.state, [line for line in found.lines if line != check.way_out(number)]


def _defined(number: str, text: str, name: str) -> Callable:
    """The student's function.

    Raises:
        Wrong: the code around it is refused, or fails, or defines no such function.
    """
    exercise = find(number)
    refusals.check_file(answers.file_of(number), exercise.without, exercise.solution)
    module = ModuleType("answer")
    module.__file__ = str(paths.home() / "answer.py")  # not in workers/: those are the course's
    linecache.cache[module.__file__] = len(text), None, text.splitlines(True), module.__file__
    sys.modules["answer"] = module
    try:
        exec(compile(text, module.__file__, "exec"), module.__dict__)
    except BaseException as error:
        raise Wrong(_named(error), "Does the cell run without the others?") from None
    if name not in vars(module):
        raise Wrong(f"there is no function {name}", "Has it another name now?")
    return vars(module)[name]


def _failed(error: BaseException) -> tuple[str, list[str]]:
    """Whose fault an error is that came out of a check: the answer's, or the check's own."""
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return "not yet", [
            "your code ended the check before it was done",
            "Is there an exit() in it?",
        ]
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
