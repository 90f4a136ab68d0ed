"""What every rank of a check runs: the cases of an exercise, with the student's functions.

The one argument is the exercise's file. This script lies alone in its folder, which Python searches
before `workers/`.
"""

import inspect
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from course_utils import paths
from course_utils.checking import findings
from course_utils.checking.compare import Wrong
from nbtorchrun.worker import init


def main(path: Path) -> None:
    """Run the cases.

    Raises:
        Wrong: the student's file lacks a function, or the answer is wrong.
    """
    lesson = loaded(path)  # before the student's file, which then can replace nothing
    functions = wanted(lesson, import_module(path.stem))
    if max(getattr(lesson, "RANKS", (1,))) > 1:
        init()
    try:
        lesson.cases(**functions)
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        if is_answers(error, path.name):
            raise  # the run's verdict names the line
        said = f"your answer stops the check with {type(error).__name__}: {error}"
        raise Wrong(said, "Return ordinary Python values or tensors.") from error


def is_answers(error: Exception, file: str) -> bool:
    """Whether an exception came out of the student's file, and not out of a look at its answer."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(Path(frame.filename) == paths.workers() / file for frame in frames)


def loaded(path: Path) -> ModuleType:
    """The exercise's file as a module; the student's has the same name, but another folder."""
    spec = spec_from_file_location(f"lessons.{path.parent.name}.{path.stem}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def wanted(lesson: ModuleType, answer: ModuleType) -> dict[str, Any]:
    """What the student wrote, by the names that `cases` asks for."""
    names = inspect.signature(lesson.cases).parameters
    for name in names:
        if not hasattr(answer, name):
            said = f"workers/{answer.__name__}.py has no `{name}`"
            raise Wrong(said, "Keep the name that the cell had when you got it.")
    return {name: getattr(answer, name) for name in names}


if __name__ == "__main__":
    with findings.judging():
        main(Path(sys.argv[1]))
