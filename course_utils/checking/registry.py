"""The exercises that there are, by number: the files `exercises/nbNN.py` register them."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location

from course_utils import paths
from course_utils.errors import InputError
from course_utils.notebook import answers, cells

EXERCISES = paths.ROOT / "exercises"
_registered: dict[str, "Exercise"] = {}


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: as in `check("04.2")`.
        title: a few words.
        test: raises `Wrong`, or returns what it proved, as lines. It is called with the
            student's function, or with nothing where the answer is a worker file.
        file: the worker file that holds the answer, or None for a function.
        without: torch's names for what the student writes; an answer may not use them.
    """

    number: str
    title: str
    test: Callable[..., list[str]]
    file: str | None = None
    without: tuple[str, ...] = ()

    @property
    def solution(self) -> str:
        """The course's own answer: the notebook's cell, or a file where none reveals it."""
        if text := cells.ours(self.number):
            return text
        return (EXERCISES / "solutions" / answers.file_of(self.number)).read_text(encoding="utf-8")

    def solution_card(self) -> dict[str, str]:
        """The solution as a notebook shows it: folded in, to be opened with a click."""
        title = f"Solution of {self.number} {html.escape(self.title)}"
        code = f"<pre>{html.escape(self.solution)}</pre>"
        page = f"<details><summary>{title}</summary>{code}</details>"
        return {"text/html": page, "text/plain": self.solution}


def exercise(
    number: str, title: str, file: str | None = None, without: tuple[str, ...] = ()
) -> Callable:
    """Register the decorated function as the test of an exercise; see `Exercise`."""

    def register(test: Callable[..., list[str]]) -> Callable[..., list[str]]:
        _registered[number] = Exercise(number, title, test, file, without)
        return test

    return register


def find(number: str) -> Exercise:
    """The exercise of that number.

    Raises:
        InputError: there is none.
    """
    if not isinstance(number, str):
        raise InputError(f'write the number of an exercise in quotes, as "04.2", not {number!r}')
    known = exercises_of(number.partition(".")[0])
    for exercise in known:
        if exercise.number == number:
            return exercise
    numbers = ", ".join(exercise.number for exercise in known)
    raise InputError(f"there is no exercise {number!r}; choose one of {numbers}")


def exercises_of(notebook: str) -> list[Exercise]:
    """The exercises of a notebook, in order.

    Raises:
        InputError: it has none.
    """
    if notebook not in notebooks():
        known = ", ".join(notebooks())
        raise InputError(f"there is no exercise in notebook {notebook!r}; choose one of {known}")
    _register(notebook)
    return [_registered[key] for key in sorted(_registered) if key.startswith(f"{notebook}.")]


@cache
def _register(notebook: str) -> None:
    """Execute the file of a notebook's exercises, by its place: they are content, not a package."""
    spec = spec_from_file_location(f"exercises_nb{notebook}", EXERCISES / f"nb{notebook}.py")
    spec.loader.exec_module(module_from_spec(spec))


def notebooks() -> list[str]:
    """The numbers of the notebooks that have exercises."""
    return sorted(path.stem.removeprefix("nb") for path in EXERCISES.glob("nb[0-9]*.py"))
