"""Exercises: `check("04.1")` says whether an answer is right, and if not, what to look at.

An exercise is a function that raises `Wrong` at the first wrong value and returns what it proved.
The modules of `course_utils.exercises` hold them, one module a notebook.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from course_utils import notebooks
from course_utils.launch import InputError, Options, Run, launch_path

EXERCISES = Path(__file__).resolve().parent / "exercises"
_registered: dict[str, "Exercise"] = {}


class Wrong(Exception):
    """An answer that is not right: the smallest failing case, and a question that leads on."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: as in `check("04.1")`.
        title: a few words.
        test: raises `Wrong`, or returns what it proved, a line each. It is called with the
            student's function, or with nothing where the answer is a worker file.
        file: the worker file that holds the answer, or None for a function.
    """

    number: str
    title: str
    test: Callable[..., list[str]]
    file: str | None = None

    @property
    def solution(self) -> str:
        """The course's own answer."""
        name = self.file or f"exercise_{self.number.replace('.', '_')}.py"
        return (EXERCISES / "solutions" / name).read_text(encoding="utf-8")

    def solution_card(self) -> dict[str, str]:
        """The solution as a notebook shows it: folded in, to be opened with a click."""
        page = (
            f"<details><summary>Solution of {self.number} {html.escape(self.title)}</summary>"
            f"<pre>{html.escape(self.solution)}</pre></details>"
        )
        return {"text/html": page, "text/plain": self.solution}


@dataclass(frozen=True)
class Result:
    """What `check` found.

    Attributes:
        state: "to do", "passed" or "failed".
        lines: what was proven, or what is wrong.
    """

    exercise: Exercise
    state: str
    lines: list[str]

    def __str__(self) -> str:
        title = f"{self.exercise.number} {self.exercise.title}: {self.state}"
        return "\n".join([title, *(f"  {line}" for line in self.lines)])


def exercise(number: str, title: str, file: str | None = None) -> Callable:
    """Register the decorated function as the test of an exercise."""

    def register(test: Callable[..., list[str]]) -> Callable[..., list[str]]:
        _registered[number] = Exercise(number, title, test, file)
        return test

    return register


def check(number: str, answer: Any = None) -> None:
    """Say whether an answer is right: *to do*, *passed* with what was proven, or *failed*.

    Args:
        number: the exercise's number, as "04.1".
        answer: the student's function, where the exercise asks for one and not for a worker file.
    """
    print(result(number, answer), flush=True)


def result(number: str, answer: Any = None) -> Result:
    """What `check` prints, to look into."""
    found = find(number)
    if found.file is None and answer is None:
        raise InputError(f'{number} asks for a function: check("{number}", your_function)')
    if found.file is not None:
        notebooks.write_missing(found.file)
    try:
        proven = found.test(answer) if found.file is None else found.test()
    except NotImplementedError:
        return Result(found, "to do", [])
    except Wrong as wrong:
        lines = wrong.message.splitlines() + [line for line in wrong.hint.splitlines() if line]
        return Result(found, "failed", [*lines, f"%solution {number} shows ours."])
    return Result(found, "passed", proven)


def find(number: str) -> Exercise:
    """The exercise of that number.

    Raises:
        InputError: there is none.
    """
    module = f"course_utils.exercises.nb{number.partition('.')[0]}"
    if number.partition(".")[0].isdigit() and find_spec(module):
        import_module(module)
    if number not in _registered:
        known = ", ".join(sorted(_registered)) or "none of that notebook"
        raise InputError(f"there is no exercise {number!r}; there are {known}")
    return _registered[number]


def probe(
    file: str | Path, nproc: int, *arguments: Any, timeout: float = 60, stall: float = 30
) -> Run:
    """Run a script that calls the student's worker file, on `nproc` ranks.

    Args:
        file: its name in `course_utils/exercises/probes`; it imports the student's file.
        nproc: number of ranks.
        *arguments: passed to the script.
        timeout: seconds after which the answer is called wrong.
        stall: seconds without any rank computing after which it is called wrong.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the run failed; with the verdict as its message.
    """
    path = EXERCISES / "probes" / file
    run = launch_path(path, map(str, arguments), Options(nproc, timeout, stall, show=False))
    if run.ok:
        return run
    if "NotImplementedError" in str(run.verdict).partition("\n")[0]:
        raise NotImplementedError
    ranks = "1 rank" if nproc == 1 else f"{nproc} ranks"
    raise Wrong(f"{ranks}: {run.verdict}")
