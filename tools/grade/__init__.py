"""Grades what students hand in: `./run.sh grade FILE...`.

`submissions` finds the answers in files, with `notebook` and `texts`; `alone` checks one answer in
processes of its own, which `child` runs, against a copy of the course, which `checker` makes; and
`report` shows what was found.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.exercises import find
from nbtorchrun.errors import InputError
from tools.grade import alone, report, submissions
from tools.grade.checker import Checker
from tools.grade.report import Grade
from tools.grade.submissions import Answer


def grade(
    files: Sequence[Path], timeout: float, json: Path | None = None, only: Sequence[str] = ()
) -> int:
    """Check every exercise of these files, each alone; print a table as it goes.

    A student's exercise counts once: if several files answer it, the last does.

    Args:
        files: notebooks, and worker files such as `exercise_04_2.py`.
        timeout: seconds that one exercise may take.
        json: where Gradescope's `results.json` is written, anew after each exercise; None for
            nowhere.
        only: the numbers of the exercises that count; empty for all of a file.

    Returns:
        The exit status: 0 if all passed, 3 if a file cannot be read, a check could not run or the
        JSON could not be written at the end, otherwise 1.

    Raises:
        InputError: a file is not there, there is no exercise of such a number, or the JSON cannot
            be written; before anything is checked.
    """
    for number in only:
        find(number)
    for path in files:
        if not os.path.lexists(path):
            raise InputError(f"cannot grade {path}: there is no such file")
    if not timeout > 0:
        raise InputError(f"--timeout must be a number of seconds above 0, not {timeout:g}")
    if json and not os.path.isdir(json.parent):
        raise InputError(f"cannot write {json}: make the folder {json.parent} first")
    if json and os.path.isdir(json):
        raise InputError(f"cannot write {json}: it is a folder, so name a file in it")
    # Before any answer runs: it could change the files of others, and the course's.
    checker = Checker()
    handed_in = {path: _read(path, only) for path in files}
    found = [each for rows in handed_in.values() for each in rows]
    counting = submissions.counting(each for each in found if isinstance(each, Answer))
    results = report.Results(json, sum(isinstance(each, Grade) for each in found) + len(counting))
    grades: list[Grade] = []
    results.write(grades)
    table = report.Table(each.exercise.title for each in found if isinstance(each, Answer))
    for path, rows in handed_in.items():
        table.begin(path)
        for row in rows:
            if isinstance(row, Answer) and (counts := counting[row.key]) is not row:
                table.leave_out(row, counts)
                continue
            grades.append(row if isinstance(row, Grade) else _checked(row, timeout, checker))
            table.add(grades[-1])
            with contextlib.suppress(InputError):  # the disk may have room again, later
                results.write(grades)
    table.end(grades)
    try:
        results.end(grades)
    except InputError as error:
        print(f"run.sh: {error}", file=sys.stderr)
        return report.BLOCKED
    return report.status(grades)


def _read(path: Path, only: Sequence[str]) -> list[Answer | Grade]:
    """The answers in a file, or that it cannot be graded: one file must not stop the others."""
    try:
        found = [a for a in submissions.read(path) if not only or a.exercise.number in only]
        if not found:
            raise InputError(f"{path.name} is not where {', '.join(only)} is answered")
    except InputError as error:
        return [Grade.unread(path, str(error))]
    except Exception as error:  # what no one has thought of is this file's row, too
        return [Grade.unread(path, f"cannot be read: {type(error).__name__}: {error}")]
    return [*found]


def _checked(answer: Answer, timeout: float, checker: Checker) -> Grade:
    """What the check of an answer finds, or that it could not run: the others go on."""
    try:
        return alone.check(answer, timeout, checker)
    except Exception as error:
        why = f"the check could not run: {type(error).__name__}: {error}"
        return Grade.of(answer, "blocked", [why])
