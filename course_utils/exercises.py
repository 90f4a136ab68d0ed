"""The exercises that there are, by number: the files `lessons/nbNN/exercise_NN_M.py`.

A kernel reads of such a file only the literals under its capital names, `Exercise` says which:
nothing of it runs, so a check costs no import of torch. The ranks execute all of it.
"""

import ast
import html
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from course_utils import answers, paths
from nbtorchrun.errors import InputError


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: as in `check("04.2")`; the file's name has it.
        path: the file that holds all of it.
        title: a few words.
        proven: what an answer that passes has proven, as lines.
        ours: our answer; the course runs on it until the student's has passed.
        ranks: the numbers of ranks that it runs on, one after another.
        seconds: how long a run may take.
        without: torch's names for what the student writes; an answer may not use them.
        lonely: the question where ranks waited for one that did not come.
        alone: the question for an answer that fails on one rank and has no other hint.
        hints: other questions, each by a part of the verdict on a run that failed.
        as_given: how the SHA-256 of the file that the student gets begins, where it is no stub but
            whole and wrong; as long as the file is that one, the exercise is *to do*.
    """

    number: str
    path: Path
    title: str
    proven: tuple[str, ...]
    ours: str
    ranks: tuple[int, ...] = (1,)
    seconds: float = 30
    without: tuple[str, ...] = ()
    lonely: str = "Does every rank call every collective, with messages of the same size?"
    alone: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)
    as_given: str = ""

    @property
    def file(self) -> str:
        """The worker file that holds the answer."""
        return answers.file_of(self.number)

    def solution_card(self) -> dict[str, str]:
        """The solution as a notebook shows it: folded in, to be opened with a click."""
        title = f"Solution of {self.number} {html.escape(self.title)}"
        code = f"<pre>{html.escape(self.ours)}</pre>"
        page = f"<details><summary>{title}</summary>{code}</details>"
        return {"text/html": page, "text/plain": self.ours}


def read(path: Path) -> Exercise:
    """The exercise that a file holds.

    Raises:
        ValueError: one of its settings is computed: a kernel executes nothing of the file.
    """
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, modified: int) -> Exercise:
    """The exercise as it was when `modified`."""
    number = ".".join(path.stem.split("_")[1:])
    names = {each.name.upper() for each in fields(Exercise)}
    found = {}
    for statement in ast.parse(path.read_bytes()).body:
        match statement:
            case ast.Assign([ast.Name(name)], value) if name in names:
                try:
                    found[name.lower()] = ast.literal_eval(value)
                except ValueError:
                    raise ValueError(
                        f"{path}, line {value.lineno}: write {name} out, as a literal"
                    ) from None
    return Exercise(number, path, **found)


def find(number: str) -> Exercise:
    """The exercise of that number.

    Raises:
        InputError: there is none.
    """
    if not isinstance(number, str):
        raise InputError(f'write the number of an exercise in quotes, as "04.2", not {number!r}')
    notebook = number.partition(".")[0]
    path = paths.LESSONS / f"nb{notebook}" / answers.file_of(number)
    if path.is_file():
        return read(path)
    numbers = ", ".join(exercise.number for exercise in exercises_of(notebook))
    raise InputError(f"there is no exercise {number!r}; choose one of {numbers}")


def exercises_of(notebook: str) -> list[Exercise]:
    """The exercises of a notebook, in order.

    Raises:
        InputError: it has none.
    """
    if notebook not in notebooks():
        known = ", ".join(notebooks())
        raise InputError(f"there is no exercise in notebook {notebook!r}; choose one of {known}")
    return [read(path) for path in sorted((paths.LESSONS / f"nb{notebook}").glob("exercise_*.py"))]


def notebooks() -> list[str]:
    """The numbers of the notebooks that have exercises."""
    folders = {path.parent.name for path in paths.LESSONS.glob("nb[0-9]*/exercise_*.py")}
    return sorted(name.removeprefix("nb") for name in folders)
