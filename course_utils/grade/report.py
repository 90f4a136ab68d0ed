"""What `grade` shows and writes: a table, and the JSON that Gradescope reads."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checking.check import MARKS
from course_utils.display.console import wrapped
from course_utils.grade.submissions import Answer

STATES = {**MARKS, "blocked": "!"}  # with the mark of each


@dataclass(frozen=True)
class Grade:
    """What was found of one exercise in one file.

    Attributes:
        file: what was handed in.
        number: the exercise's; '' if the file could not be read.
        title: the exercise's, or the file's name.
        state: "passed", "not yet", "to do", or "blocked" if the check itself could not run.
        lines: what was proven, or what is wrong.
        seconds: how long the check took.
    """

    file: Path
    number: str
    title: str
    state: str
    lines: list[str]
    seconds: float = 0.0

    @classmethod
    def of(cls, answer: Answer, state: str, lines: list[str], seconds: float = 0.0) -> "Grade":
        """The grade of an answer."""
        exercise = answer.exercise
        return cls(answer.file, exercise.number, exercise.title, state, lines, seconds)


class Table:
    """A line for each exercise, printed once it is known.

    Args:
        rows: all that will be shown.
    """

    def __init__(self, rows: Iterable[Answer | Grade]):
        titles = [row.title if isinstance(row, Grade) else row.exercise.title for row in rows]
        self._width = max(map(len, titles), default=0)

    def begin(self, file: Path) -> None:
        """Print the name of a file."""
        print(file, flush=True)

    def add(self, grade: Grade) -> None:
        """Print what was found of an exercise; all of it is in the JSON."""
        state = f"{STATES[grade.state]} {grade.state}"
        first = f"  {grade.number:5} {grade.title:{self._width}}  {state:9}"
        why = grade.lines[:1] if grade.state in ("not yet", "blocked") else []
        print(wrapped("  ".join([first, *why]).rstrip(), len(first) + 2), flush=True)

    def end(self, grades: Sequence[Grade]) -> None:
        """Print how many there are of each."""
        print(summary(grades))


def summary(grades: Sequence[Grade]) -> str:
    """`3 of 5 passed, 1 not yet, 1 to do`."""
    states = [grade.state for grade in grades]
    others = [f"{states.count(s)} {s}" for s in STATES if s in states and s != "passed"]
    return ", ".join([f"{states.count('passed')} of {len(states)} passed", *others])


def status(grades: Sequence[Grade]) -> int:
    """The exit status: 3 if a check could not run, 0 if all passed, otherwise 1."""
    states = {grade.state for grade in grades}
    return 3 if "blocked" in states else 0 if states <= {"passed"} else 1


def write(grades: Sequence[Grade], path: Path) -> None:
    """Write what was found as Gradescope's `results.json`, with our own in each `extra_data`."""
    found = {"output": summary(grades), "tests": [_test(grade) for grade in grades]}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
            "file": str(grade.file),
            "state": grade.state,
            "seconds": round(grade.seconds, 1),
        },
    }
