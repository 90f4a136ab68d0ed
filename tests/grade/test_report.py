"""What `grade` prints and writes, and when: the checks themselves are stand-ins here."""

import json
import os
import sys

import pytest

from nbtorchrun.errors import InputError
from tools.__main__ import main
from tools.grade import alone, grade
from tools.grade.report import Grade

ANSWER = "mine = 1\n"


@pytest.fixture
def checks(monkeypatch):
    """What the check of each answer finds, by the file's path from the end."""

    class Checks(dict):
        def __call__(self, answer, timeout, checker):
            for name, found in self.items():
                if str(answer.file).endswith(name):
                    state, lines = found() if callable(found) else found
                    return Grade.of(answer, state, lines)
            return Grade.of(answer, "passed", ["proven"])

    found = Checks()
    monkeypatch.setattr(alone, "check", found)
    return found


def test_results_are_written_as_they_come(students, checks):
    out, seen = students.folder / "out.json", []

    def look():
        seen.append(json.loads(out.read_text()))
        return "passed", []

    numbers = ("03_1", "03_2", "04_1")
    files = [students.file(f"exercise_{number}.py", ANSWER) for number in numbers]
    checks[".py"] = look
    assert grade(files, 60, out) == 0
    assert [[test["number"] for test in found["tests"]] for found in seen] == [
        [],
        ["03.1"],
        ["03.1", "03.2"],
    ]
    assert seen[1]["output"] == "1 of 1 passed, 1 of 3 checked"
    assert json.loads(out.read_text())["output"] == "3 of 3 passed"
    assert os.listdir(students.folder).count("out.json.part") == 0


def test_a_check_that_cannot_run_is_one_row(students, checks, capsys):
    def breaking():
        raise OSError(28, "No space left on device")

    checks["exercise_03_1.py"] = breaking
    files = [students.file(f"exercise_03_{n}.py", ANSWER) for n in (1, 2)]
    assert grade(files, 60) == 3
    out = capsys.readouterr().out
    assert "! blocked  the check could not run: OSError: [Errno 28] No space left" in out
    assert out.endswith("1 of 2 passed, 1 blocked\n")


def test_each_student_gets_a_sum(students, checks, capsys):
    checks["ada/exercise_03_2.py"] = "not yet", ["wrong"]
    names = ["ada/exercise_03_1.py", "ada/exercise_03_2.py", "bob/exercise_03_1.py"]
    names += ["all/lee_123_456_exercise_03_1-1.py", "all/lee_123_457_exercise_03_1.py"]
    files = [students.file(name, ANSWER) for name in names]
    files.append(students.file("bob/exercise_03_2.py", ANSWER.encode("utf-16")))
    assert grade(files, 60, students.folder / "out.json") == 3
    printed = capsys.readouterr().out
    left_out = (
        "a hook that averages the gradient  - left out  lee_123_456_exercise_03_1-1.py counts"
    )
    assert f"  03.1  {left_out}\n" in printed
    found = json.loads((students.folder / "out.json").read_text())
    of = {
        os.path.relpath(each["student"], students.folder): each
        for each in found["extra_data"]["students"]
    }
    assert {name: (each["score"], each["max_score"]) for name, each in of.items()} == {
        "ada": (1, 2),
        "bob": (1, 1),
        "all/lee_123": (1, 1),
    }
    *sums, total = printed.splitlines()[-4:]
    assert [line.partition("  ")[2].strip() for line in sums] == [
        "1 of 2 passed, 1 not yet",
        "1 of 1 passed, 1 file blocked",
        "1 of 1 passed",
    ]
    assert total == "3 of 4 passed, 1 not yet, 1 file blocked" == found["output"]


def test_gradescopes_score_counts_an_exercise_once_whatever_its_files_are_called(students, checks):
    names = ["lee_123_456_exercise_03_1.py", "kim_321_456_exercise_03_1.py", "exercise_03_2.py"]
    out = students.folder / "out.json"
    assert grade([students.file(name, ANSWER) for name in names], 60, out) == 0
    assert json.loads(out.read_text())["score"] == 2


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[2J\x1b[1;1H", r"\x1b[2J\x1b[1;1H"),
        ("a\rb\x08\x9b", r"a\rb\x08\x9b"),
        ("\ud800 \udcff", r"\ud800 \udcff"),
        ("‮txt", r"\u202etxt"),
        ("é ✓ 中\tx", "é ✓ 中\tx"),
    ],
)
def test_what_no_screen_should_obey_is_written_out(students, checks, capsys, said, shown):
    checks["exercise_03_1.py"] = "not yet", [said, said]
    out = students.folder / "out.json"
    assert grade([students.file("exercise_03_1.py", ANSWER)], 60, out) == 1
    assert f"✗ not yet  {shown}\n" in capsys.readouterr().out
    (test,) = json.loads(out.read_text(encoding="utf-8"))["tests"]
    assert test["output"] == f"not yet\n{shown}\n{shown}"


def test_a_message_of_several_lines_forges_no_row(students, checks, capsys):
    checks["exercise_03_1.py"] = "not yet", ["wrong\n  03.2  buckets  ✓ passed"]
    grade([students.file("exercise_03_1.py", ANSWER)], 60)
    assert "passed\n" not in capsys.readouterr().out.replace("0 of 1 passed", "")


def test_a_file_name_that_is_not_utf_8_is_written_out(students, checks, capsys):
    name = os.fsdecode(b"\xff\x1b exercise_03_1.py")
    out = students.folder / "out.json"
    assert grade([students.file(name, ANSWER)], 60, out) == 0
    assert r"\udcff\x1b exercise_03_1.py" in capsys.readouterr().out
    (test,) = json.loads(out.read_text(encoding="utf-8"))["tests"]
    assert test["extra_data"]["file"].endswith(r"\udcff\x1b exercise_03_1.py")


def test_json_that_cannot_be_written_ends_the_call_before_anything_is_checked(
    students, checks, capsys, monkeypatch
):
    students.file("exercise_03_1.py", ANSWER)
    checks["exercise_03_1.py"] = pytest.fail
    monkeypatch.chdir(students.folder)
    (students.folder / "results").mkdir()
    (students.folder / "file").touch()
    for out, said in {
        "results": "cannot write results: it is a folder, so name a file in it",
        "no/out.json": "cannot write no/out.json: make the folder no first",
        "file/out.json": "cannot write file/out.json: make the folder file first",
        "o" * 300: "(File name too long)",
    }.items():
        assert main(["grade", "exercise_03_1.py", "--json", out]) == 2
        assert said in capsys.readouterr().err


def test_json_that_cannot_be_written_later_loses_nothing_that_is_printed(students, checks, capsys):
    folder = students.folder / "results"
    folder.mkdir()

    def remove():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return "passed", []

    checks["exercise_03_1.py"] = remove
    files = [students.file(f"exercise_03_{n}.py", ANSWER) for n in (1, 2)]
    assert grade(files, 60, folder / "out.json") == 3
    out, err = capsys.readouterr()
    assert out.endswith("2 of 2 passed\n")
    assert f"cannot write {folder}/out.json (No such file or directory)" in err


def test_json_may_be_a_link_or_a_pipe(students, checks):
    link, target = students.folder / "link.json", students.folder / "target.json"
    link.symlink_to(target)
    path = students.file("exercise_03_1.py", ANSWER)
    assert grade([path], 60, link) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["score"] == 1
    ours, its = os.pipe()
    assert grade([path], 60, type(link)(f"/dev/fd/{its}")) == 0
    os.close(its)
    with open(ours) as pipe:
        assert json.load(pipe)["score"] == 1


def test_a_number_that_is_no_exercise_ends_the_call(students):
    with pytest.raises(InputError, match=r"no exercise '03\.9'"):
        grade([students.file("exercise_03_1.py", ANSWER)], 60, only=["03.9"])


def test_a_python_without_what_reads_notebooks_is_told_what_to_install(
    students, capsys, monkeypatch
):
    for name in [each for each in sys.modules if each.startswith(("tools.grade", "IPython"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert main(["grade", str(students.file("exercise_03_1.py", ANSWER))]) == 2
    assert "has no IPython" in capsys.readouterr().err
