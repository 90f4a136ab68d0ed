"""What `grade` shows and writes: a table, and the JSON that Gradescope reads."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checking.check import MARKS
from nbtorchrun.errors import InputError
from tools.grade.submissions import Answer, student
from tools.grade.texts import visible
from tools.wrapping import wrapped

STATES = {**MARKS, "blocked": "!"}  # with the mark of each
BLOCKED = 3  # an exit status


@dataclass(frozen=True)
class Grade:
    """What was found of one exercise in one file.

    Attributes:
        file: what was handed in.
        number: the exercise's; '' if the file could not be read.
        title: the exercise's, or the file's name.
        state: "passed", "not yet", "to do", or "blocked" if the check itself could not run.
        lines: what was proven, or what is wrong; none of them holds a control character.
        seconds: how long the check took.
    """

    file: Path
    number: str
    title: str
    state: str
    lines: list[str]
    seconds: float = 0.0

    @classmethod
    def of(cls, answer: Answer, state: str, lines: Iterable[str], seconds: float = 0.0) -> "Grade":
        """The grade of an answer."""
        exercise, said = answer.exercise, _lines([*lines, *answer.lines])
        return cls(answer.file, exercise.number, exercise.title, state, said, seconds)

    @classmethod
    def unread(cls, file: Path, why: str) -> "Grade":
        """That a file cannot be graded at all."""
        return cls(file, "", visible(file.name), "blocked", _lines([why]))

    @property
    def student(self) -> str:
        """Whose it is."""
        return student(self.file)


def _lines(texts: Iterable[str]) -> list[str]:
    return [visible(line) for text in texts for line in text.split("\n") if line]


class Table:
    """A line for each exercise, printed once it is known.

    Args:
        titles: those of all exercises that will be shown.
    """

    def __init__(self, titles: Iterable[str]):
        self._width = max(map(len, titles), default=0)

    def begin(self, file: Path) -> None:
        """Print the name of a file."""
        print(visible(str(file)), flush=True)

    def add(self, grade: Grade) -> None:
        """Print what was found of an exercise; all of it is in the JSON."""
        state = f"{STATES[grade.state]} {grade.state}"
        first = f"  {grade.number:5} {grade.title:{self._width}}  {state:9}"
        why = grade.lines[:1] if grade.state in ("not yet", "blocked") else grade.lines[1:2]
        why = why if grade.state != "passed" else []
        print(wrapped("  ".join([first, *why]).rstrip(), len(first) + 2), flush=True)

    def leave_out(self, answer: Answer, counts: Answer) -> None:
        """Print that an answer is not checked: an exercise counts once for each student."""
        exercise, other = answer.exercise, visible(counts.file.name)
        first = f"  {exercise.number:5} {exercise.title:{self._width}}  - left out"
        print(wrapped(f"{first}  {other} counts", len(first) + 2), flush=True)

    def end(self, grades: Sequence[Grade]) -> None:
        """Print how many there are of each: for each student, and in all."""
        of_each = by_student(grades)
        width = max((len(visible(name)) for name in of_each), default=0)
        for name, theirs in of_each.items() if len(of_each) > 1 else ():
            print(f"{visible(name):{width}}  {summary(theirs)}")
        print(summary(grades))


def by_student(grades: Iterable[Grade]) -> dict[str, list[Grade]]:
    """The grades of each student, in the order in which the students come."""
    found: dict[str, list[Grade]] = {}
    for grade in grades:
        found.setdefault(grade.student, []).append(grade)
    return found


def summary(grades: Sequence[Grade]) -> str:
    """`3 of 5 passed, 1 not yet, 1 to do`; a file that cannot be read is not one of 5."""
    states = [grade.state for grade in grades if grade.number]
    unread = sum(not grade.number for grade in grades)
    found = [f"{states.count('passed')} of {len(states)} passed"]
    found += [f"{states.count(s)} {s}" for s in STATES if s in states and s != "passed"]
    found += [f"{unread} file{'s' * (unread > 1)} blocked"] if unread else []
    return ", ".join(found)


def status(grades: Sequence[Grade]) -> int:
    """The exit status: `BLOCKED` if a check could not run, 0 if all passed, otherwise 1."""
    states = {grade.state for grade in grades}
    return BLOCKED if "blocked" in states else 0 if states <= {"passed"} else 1


class Results:
    """The JSON file that Gradescope reads, whole at any moment.

    Args:
        path: where it is; None for nowhere.
        total: how many exercises will be checked.
    """

    def __init__(self, path: Path | None, total: int):
        self._path, self._total = path, total

    def write(self, grades: Sequence[Grade]) -> None:
        """Write what has been found so far, in place of what was there.

        Raises:
            InputError: that is not possible.
        """
        if self._path and self._is_file:
            self._replace(_results(grades, f", {len(grades)} of {self._total} checked"))

    def end(self, grades: Sequence[Grade]) -> None:
        """Write all of it; a pipe or /dev/stdout gets nothing before.

        Raises:
            InputError: that is not possible.
        """
        if self._path:
            self._replace(_results(grades, ""))

    @property
    def _is_file(self) -> bool:
        return os.path.isfile(self._path) or not os.path.exists(self._path)

    def _replace(self, found: dict[str, Any]) -> None:
        target = Path(os.path.realpath(self._path))
        part = target.with_name(f"{target.name}.part") if self._is_file else self._path
        try:
            part.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
            if part is not self._path:
                os.replace(part, target)
        except OSError as error:
            raise InputError(f"cannot write {self._path} ({error.strerror})") from None


def _results(grades: Sequence[Grade], so_far: str) -> dict[str, Any]:
    """Gradescope's `results.json`, with our own in each `extra_data`."""
    return {
        "output": summary(grades) + so_far,
        # Gradescope takes this in place of the sum. Each exercise counts once, whatever names the
        # files of its one student have.
        "score": float(len({grade.number for grade in grades if grade.state == "passed"})),
        "tests": [_test(grade) for grade in grades],
        "extra_data": {
            "students": [
                {
                    "student": visible(name),
                    "score": float(sum(grade.state == "passed" for grade in theirs)),
                    "max_score": float(sum(bool(grade.number) for grade in theirs)),
                    "output": summary(theirs),
                }
                for name, theirs in by_student(grades).items()
            ]
        },
    }


def _test(grade: Grade) -> dict[str, Any]:
    passed = grade.state == "passed"
    return {
        "number": grade.number,
        "name": grade.title,
        "status": "passed" if passed else "failed",  # Gradescope knows no other
        "score": float(passed),
        "max_score": 1.0,
        "output": "\n".join([grade.state, *grade.lines]),
        "extra_data": {
            "student": visible(grade.student),
            "file": visible(str(grade.file)),
            "state": grade.state,
            "seconds": round(grade.seconds, 1),
        },
    }
