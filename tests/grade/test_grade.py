"""`./run.sh grade`: what it finds in files, what it says, and how it ends."""

import json
import re
from pathlib import Path

import pytest

from course_utils import paths
from course_utils.exercises import find
from nbtorchrun.errors import InputError
from tools.grade import grade, report, submissions
from tools.grade.report import Grade

CHECK = 'check("03.3")'
SHARE = "%%worker exercise_03_3.py\n" + find("03.3").ours


def answers(path: Path) -> dict[str, str]:
    return {found.exercise.number: found.text for found in submissions.read(path)}


def test_a_notebook_hands_in_each_of_its_exercises(students):
    path = students.notebook(
        "renamed.ipynb",
        "from course_utils import check",
        "%%worker exercise_03_2.py\nmine = 1",
        "%%worker --append exercise_03_2.py\nmore = 2",
        "%%worker train.py\nother = 3",
        "%solution 03.1\nimport math as m\nunused = launch('train.py')",
        SHARE,
        CHECK,
        "def my_share():\n    'in the notebook: not what the check asks about'",
    )
    assert answers(path) == {
        "03.1": "",
        "03.2": "mine = 1\n\n\nmore = 2\n",
        "03.3": find("03.3").ours,
    }


def test_every_exercise_of_the_notebooks_as_they_are_is_found():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for found in submissions.read(path):
            assert "NotImplementedError" in found.text or found.exercise.file, found
            assert found.text, found


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("03.ipynb", "<<<<<<< HEAD", "is broken"),
        ("03.ipynb", '{"cells": [{"cell_type": "code"}]}', "is broken"),
        ("03.ipynb", '{"cells": 3}', "is broken"),
        ("03.ipynb", '{"cells": []}', "answers no exercise"),
        ("answer.py", "", "call it exercise_04_2.py"),
        ("exercise_99_1.py", "", "no exercise in notebook '99'"),
    ],
)
def test_a_file_that_cannot_be_graded_blocks_no_other(students, name, text, says, capsys):
    todo = students.notebook("todo.ipynb", CHECK)
    out = students.folder / "out.json"
    assert grade([students.file(name, text), todo], 60, out) == 3
    blocked, *others = json.loads(out.read_text())["tests"]
    assert says in blocked["output"]
    assert [test["extra_data"]["state"] for test in others] == ["to do"] * 3
    assert capsys.readouterr().out.endswith("0 of 3 passed, 3 to do, 1 file blocked\n")


def test_only_the_exercises_that_count_are_graded(students, capsys):
    here, elsewhere = (students.notebook(f"{n}.ipynb", f'check("{n}.1")') for n in ("03", "04"))
    assert grade([here], 60, only=["03.3", "03.1"]) == 1
    assert capsys.readouterr().out.endswith("0 of 2 passed, 2 to do\n")
    assert grade([here, elsewhere], 60, only=["03.3"]) == 3
    assert "04.ipynb is not where 03.3 is answered" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"no exercise '03\.9'"):
        grade([here], 60, only=["03.9"])


def test_a_file_that_is_not_there_ends_the_call_before_anything_is_checked(students):
    for name in ("missing.ipynb", "out.txt"):
        with pytest.raises(InputError, match="cannot grade"):
            grade([students.notebook("03.ipynb", CHECK), students.folder / name], 60)
    with pytest.raises(InputError, match="above 0"):
        grade([students.notebook("03.ipynb", CHECK)], 0)
    with pytest.raises(InputError, match="make the folder"):
        grade([students.notebook("03.ipynb", CHECK)], 60, students.folder / "no" / "out.json")


@pytest.mark.timeout(300)
def test_each_exercise_of_a_class_gets_its_state(students):
    one = students.notebook(
        "ada.ipynb",
        "%%worker exercise_03_2.py\n" + find("03.2").ours,
        SHARE.replace("rank::ranks", "rank * ranks::ranks"),
        CHECK,
    )
    done = students.grade(one)
    assert (done.returncode, done.stderr) == (1, "")
    name, *rows, total = done.stdout.splitlines()
    assert name == str(one)
    assert [re.split("  +", row.strip())[2] for row in rows] == ["○ to do", "✓ passed", "✗ not yet"]
    assert total == "1 of 3 passed, 1 to do, 1 not yet"
    assert [test["score"] for test in done.tests] == [0, 1, 0]
    assert [test["status"] for test in done.tests] == ["failed", "passed", "failed"]
    assert [test["number"] for test in done.tests] == ["03.1", "03.2", "03.3"]
    assert done.tests[1]["output"].startswith("passed\nthe last parameter first")
    assert "my_share(" in done.tests[2]["output"]
    assert "%solution" not in done.tests[2]["output"]


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["passed", "passed"], 0),
        (["passed", "to do"], 1),
        (["passed", "not yet"], 1),
        (["not yet", "blocked"], 3),
    ],
)
def test_the_exit_status(states, status):
    assert report.status([Grade(Path(), "", "", state, []) for state in states]) == status


@pytest.fixture(autouse=True)
def no_answers_left():
    yield
    for path in paths.workers().glob("exercise_*.py"):
        path.unlink()
