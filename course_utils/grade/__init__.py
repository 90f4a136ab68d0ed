"""Grades what students hand in: `./run.sh grade FILE...`.

`submissions` reads the answers out of notebooks and worker files, `alone` checks one answer in
processes of its own, which `child` runs, and `report` shows what was found.
"""

from collections.abc import Sequence
from pathlib import Path

from course_utils.checking.registry import find
from course_utils.errors import InputError
from course_utils.grade import alone, report, submissions
from course_utils.grade.report import Grade

KINDS = (".ipynb", ".py")


def grade(
    files: Sequence[Path], timeout: float, json: Path | None = None, only: Sequence[str] = ()
) -> int:
    """Check every exercise of these files, each alone; print a table as it goes.

    Args:
        files: notebooks, and worker files such as `exercise_04_2.py`.
        timeout: seconds that one exercise may take.
        json: where Gradescope's `results.json` is written; None for nowhere.
        only: the numbers of the exercises that count; empty for all of a file.

    Returns:
        The exit status: 0 if all passed, 3 if a check could not run, otherwise 1.

    Raises:
        InputError: a file is not there, or is none that can be graded, or there is no exercise of
            such a number; before anything is checked.
    """
    for number in only:
        find(number)
    for path in files:
        if not path.is_file() or path.suffix not in KINDS:
            raise InputError(f"cannot grade {path}: name a notebook, or a file as exercise_04_2.py")
    if not timeout > 0:
        raise InputError(f"--timeout must be a number of seconds above 0, not {timeout:g}")
    if json and not json.parent.is_dir():
        raise InputError(f"cannot write {json}: make the folder {json.parent} first")
    # Before any answer runs: it could change the files of others.
    handed_in = {path: _read(path, only) for path in files}
    table = report.Table(found for answers in handed_in.values() for found in answers)
    grades = []
    for path, answers in handed_in.items():
        table.begin(path)
        for answer in answers:
            found = answer if isinstance(answer, Grade) else alone.check(answer, timeout)
            grades.append(found)
            table.add(found)
    table.end(grades)
    if json:
        report.write(grades, json)
    return report.status(grades)


def _read(path: Path, only: Sequence[str]) -> list[submissions.Answer | Grade]:
    """The answers in a file, or that it cannot be graded: one file must not stop the others."""
    try:
        found = [a for a in submissions.read(path) if not only or a.exercise.number in only]
        if not found:
            raise InputError(f"{path.name} is not where {', '.join(only)} is answered")
    except InputError as error:
        return [Grade(path, "", path.name, "blocked", [str(error)])]
    return [*found]
