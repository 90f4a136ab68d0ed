"""What a class hands in: which exercises a file answers, whose it is, and what of it counts."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from course_utils.exercises import Exercise, exercises_of, find, notebooks
from nbtorchrun.errors import InputError
from tools.grade import notebook, texts

MOST_BYTES = 50_000_000  # of a file; a notebook with many pictures has a tenth of that
EXERCISE = re.compile(r"exercise_(\d\d)_(\d+)(?!\d)", re.IGNORECASE)
# What browsers, Jupyter and learning platforms append: ` (1)`, `-Copy1`, `-1`.
COPY = re.compile(r"(?:[ -](?:Copy)?|(?=\())\(?(\d+)\)?$", re.IGNORECASE)
PLATFORMS = (  # what they write before a name, with the groups that name the student
    re.compile(r"(.+?)(?:_LATE)?(_\d{3,})_\d{3,}_"),  # Canvas: lee_12345_67890_03_ddp.ipynb
    re.compile(r"(.+_\d+)_assignsubmission_file_"),  # Moodle
)


@dataclass(frozen=True, eq=False)
class Answer:
    """A student's answer to one exercise.

    Attributes:
        file: the file that was handed in.
        exercise: the exercise that it answers.
        text: the answer as a Python file; '' if nothing was handed in.
        lines: what to say about it, whatever its check finds.
    """

    file: Path
    exercise: Exercise
    text: str
    lines: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What counts once: a student and the number of an exercise."""
        return student(self.file), self.exercise.number

    @property
    def order(self) -> tuple[bool, int]:
        """What counts if there are several: the largest; of those that are alike, the last."""
        given = notebook.given().get(self.exercise.file, "")
        is_begun = self.text.strip() not in ("", given.strip())
        copy = COPY.search(self.file.stem)
        return is_begun, int(copy[1]) if copy else 0


def student(path: Path) -> str:
    """Whose file it is: its folder's, or of several in a folder the one whom its name begins with.

    Only names as learning platforms write them are trusted to name a student: otherwise a student
    could hand in one answer under two names, and get the points of two.
    """
    for platform in PLATFORMS:
        if found := platform.match(path.name):
            return os.path.normpath(path.parent / "".join(found.groups()))
    return os.path.normpath(path.parent)


def counting(answers: Iterable[Answer]) -> dict[tuple[str, str], Answer]:
    """The answer that counts, by student and number of the exercise: the last that was begun."""
    best: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        if answer.key not in best or answer.order >= best[answer.key].order:
            best[answer.key] = answer
    return best


def read(path: Path) -> list[Answer]:
    """The answers in a file, in the order of the exercises.

    Of a notebook: one for each exercise that the course's notebook of that number has.

    Raises:
        InputError: it cannot be read, or answers no exercise.
    """
    data, kind = _bytes(path), path.suffix.lower()
    if kind == ".ipynb":
        return _of_notebook(path, data)
    if kind == ".py":
        return [_of_worker_file(path, data)]
    raise InputError(
        f"{path.name} is neither a notebook nor a Python file: its name must end in .ipynb or .py"
    )


def _bytes(path: Path) -> bytes:
    if not path.is_file():  # a pipe would be waited for
        raise InputError(f"{path.name} is not a file: hand in the notebook or the worker file")
    if (size := path.stat().st_size) > MOST_BYTES:
        most = f"{MOST_BYTES // 1_000_000} MB"
        raise InputError(
            f"{path.name} has {size // 1_000_000} MB, and at most {most} are read: "
            "clear its outputs, save it, and hand it in again"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name} cannot be read ({error.strerror})") from None


def _of_worker_file(path: Path, data: bytes) -> Answer:
    named = EXERCISE.findall(path.stem)
    if not named:
        raise InputError(f"{path.name} names no exercise: call it exercise_04_2.py, for 04.2")
    exercise = find(".".join(named[-1]))
    return Answer(path, exercise, texts.python_source(data, path.name))


def _of_notebook(path: Path, data: bytes) -> list[Answer]:
    cells = notebook.read(data, path.name)
    written = notebook.files(cells, path.stem)
    named = [match[1] for match in map(EXERCISE.match, written) if match]
    named += [number.partition(".")[0] for number in notebook.asked(cells)]
    named += [match[1] for cell in cells for match in _misplaced(cell)]
    numbers = set(named) & set(notebooks())
    if not numbers:
        raise InputError(f"{path.name} answers no exercise: hand in a notebook of the course")
    exercises = [each for number in sorted(numbers) for each in exercises_of(number)]
    return [_answer(path, exercise, cells, written) for exercise in exercises]


def _misplaced(cell: notebook.Cell) -> Iterable[re.Match[str]]:
    """The exercises that a cell names in a `%%worker` line, at its top or not."""
    return re.finditer(rf"^\s*%%worker .*{EXERCISE.pattern}", cell.source, re.MULTILINE)


def _answer(
    path: Path,
    exercise: Exercise,
    cells: list[notebook.Cell],
    written: dict[str, notebook.Written],
) -> Answer:
    """A notebook's answer to an exercise."""
    found = written.get(exercise.file)
    if not found:
        why = notebook.misplaced(cells, exercise.file)
        return Answer(path, exercise, "", (why,) if why else ())
    *others, last = found.begun or (0,)
    said = f"cells {', '.join(map(str, others))} and {last} write it: cell {last} counts, the last"
    return Answer(path, exercise, found.text, (said,) if others else ())
