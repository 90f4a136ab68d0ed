"""`./run.sh grade`: what it finds in files, what it says, and how it ends."""

import json
import re
from pathlib import Path

import pytest

from course_utils import paths
from course_utils.checking.registry import find
from course_utils.errors import InputError
from course_utils.grade import grade, report, submissions
from course_utils.grade.child import judged
from course_utils.grade.report import Grade

CHECK = 'check("03.3", my_share)'
SHARE = find("03.3").solution


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
        "def half(x):\n    return m.floor(x / 2)",
        "@staticmethod\ndef my_share(size, ranks, rank, epoch, seed):\n    return half(size)",
        CHECK,
        "def my_share():\n    'after the check: not what it asks about'",
    )
    assert answers(path) == {
        "03.1": "",
        "03.2": "mine = 1\n\n\nmore = 2\n",
        "03.3": (
            "import math as m\n\ndef half(x):\n    return m.floor(x / 2)\n\n"
            "@staticmethod\ndef my_share(size, ranks, rank, epoch, seed):\n    return half(size)\n"
        ),
    }


@pytest.mark.parametrize(
    "more",
    ["SIZES += [2]", "if SIZES:\n    SIZES = [2]", "for each in (1, 2):\n    SIZES.append(each)"],
)
def test_what_an_answer_uses_is_there_with_what_was_done_to_it(students, more):
    share = "def my_share():\n    return SIZES"
    path = students.notebook("03.ipynb", "SIZES = [1]", f"{more}\n{share}", CHECK)
    assert answers(path)["03.3"].startswith("SIZES = [1]\n")


def test_a_function_is_the_one_that_its_check_names(students):
    path = students.notebook("03.ipynb", "def mine(): pass", 'check("03.3", mine)')
    (found,) = [each for each in submissions.read(path) if each.exercise.number == "03.3"]
    assert (found.function, found.text) == ("mine", "def mine(): pass\n")


@pytest.mark.parametrize("name", ["exercise_03_3.py", "smith_1234_exercise_03_3.py"])
def test_a_function_may_be_handed_in_as_a_file(students, name):
    (found,) = submissions.read(students.file(name, SHARE))
    assert (found.exercise.number, found.text, found.function) == ("03.3", SHARE, "my_share")


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
    assert capsys.readouterr().out.endswith("0 of 4 passed, 3 to do, 1 blocked\n")


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
        "%%worker exercise_03_2.py\n" + find("03.2").solution,
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


def judge(text: str) -> tuple[str, str]:
    state, lines = judged("03.3", text, "my_share")
    return state, "\n".join(lines)


def test_a_function_is_judged_by_its_check():
    assert judge(SHARE)[0] == "passed"
    assert judge("def my_share(*sizes):\n    raise NotImplementedError") == ("to do", "")


def test_what_is_wrong_around_a_function_is_said():
    assert judge("import torch\n1 / 0") == (
        "not yet",
        "ZeroDivisionError: division by zero (line 2 of the answer)\n"
        "Does the cell run without the others?",
    )
    assert "there is no function my_share" in judge("other = 1")[1]
    assert "KeyError: 'there'" in judge(SHARE + "\n{}['there']")[1]
    assert "SyntaxError" in judge("def my_share(:")[1]
    assert "NameError" in judge(SHARE.replace("torch.", "nothing."))[1]


def test_a_check_that_breaks_blocks(monkeypatch):
    def broken(number, answer):
        raise OSError("no space left")

    monkeypatch.setattr("course_utils.grade.child.check.result", broken)
    assert judge(SHARE) == ("blocked", "the check itself failed: OSError: no space left")
