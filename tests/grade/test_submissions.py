"""What students hand in, as it comes: names, encodings, cells, copies. Nothing is executed."""

import codecs
import json
import os

import pytest

from course_utils.exercises import find
from nbtorchrun.errors import InputError
from tools.__main__ import main
from tools.grade import grade, submissions

RIGHT = find("03.2").ours
MAGIC = "%%worker exercise_03_2.py"


def handed_in(path) -> submissions.Answer:
    """What is handed in for 03.2."""
    (found,) = [each for each in submissions.read(path) if each.exercise.number == "03.2"]
    return found


@pytest.mark.parametrize(
    "above",
    ["", "\n\n", "  \n", "%%time\n", "%%capture out\n", "%%prun -q\n", "%%time\n\n%%capture\n"],
)
def test_a_cell_is_read_as_ipython_reads_it(students, above):
    path = students.notebook("03.ipynb", f"{above}{MAGIC}\nmine = 1")
    assert (handed_in(path).text, handed_in(path).lines) == ("mine = 1\n", ())


@pytest.mark.parametrize("prompt", [">>> ", "In [3]: ", "    "])
def test_what_was_pasted_with_prompts_or_indented_is_read(students, prompt):
    more = {"In [3]: ": "   ...: ", ">>> ": "... "}.get(prompt, prompt)
    path = students.notebook("03.ipynb", f"{prompt}{MAGIC}\n{more}mine = 1")
    assert handed_in(path).text == "mine = 1\n"


@pytest.mark.parametrize(
    "body",
    [
        "def lost(a, a): pass",
        "x = 1; global x",
        "files = !ls\n%time\nhelp?",
        "x = " + "+".join("1" * 5000),
        "x" + ".a" * 5000,
        "[" * 100_000,
        "def (",
        "get_ipython().run_cell_magic('%%', [",
        "get_ipython().run_cell_magic('%%', x)",
    ],
)
def test_what_a_cell_holds_is_no_matter_to_what_reads_it(students, body):
    path = students.notebook("03.ipynb", body, f"{MAGIC}\n{body}", "%%bash\n" + body)
    assert handed_in(path).text == f"{body}\n"


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_another_kind_of_cell_gets_a_hint(students, kind):
    answer = handed_in(students.notebook("03.ipynb", f"{MAGIC}\nmine = 1", kind=kind))
    assert answer.text == ""
    assert answer.lines == (f"cell 1 holds it, but is a {kind} cell: turn it into a code cell",)


@pytest.mark.parametrize("above", ["# my answer", "import torch", "%%bash", "%time"])
def test_what_stands_above_the_magic_is_named(students, above):
    answer = handed_in(students.notebook("03.ipynb", "x = 1", f"{above}\n{MAGIC}\nmine = 1"))
    assert answer.text == ""
    assert answer.lines[0].startswith(f"cell 2 has its %%worker line below '{above}'")


def test_the_hint_is_in_the_table_and_in_the_json(students, capsys):
    path = students.notebook("03.ipynb", f"{MAGIC}\nmine = 1", kind="raw")
    assert grade([path], 60, students.folder / "out.json", ["03.2"]) == 1
    (test,) = json.loads((students.folder / "out.json").read_text())["tests"]
    assert test["output"].startswith("to do\nnothing was handed in for it\ncell 1 holds it, but")
    assert "to do    cell 1 holds it, but is a raw cell" in capsys.readouterr().out


def test_of_two_cells_for_one_exercise_the_last_counts_and_that_is_said(students):
    path = students.notebook("03.ipynb", f"{MAGIC}\none = 1", "x = 1", f"{MAGIC}\nlast = 1")
    assert handed_in(path).text == "last = 1\n"
    assert handed_in(path).lines == ("cells 1 and 3 write it: cell 3 counts, the last",)


def test_a_cell_that_appends_adds_to_the_courses_part_if_no_other_is_there(students):
    path = students.notebook("03.ipynb", "%%worker --append exercise_03_2.py\nmore = 2")
    assert "NotImplementedError" in handed_in(path).text
    assert handed_in(path).text.endswith("\n\n\nmore = 2\n")


@pytest.mark.parametrize(
    "name",
    [
        "exercise_03_2 (1).py",
        "exercise_03_2(2).py",
        "exercise_03_2-1.py",
        "exercise_03_2 - Copy.py",
        "exercise_03_2 - Copy (3).py",
        "Copy of exercise_03_2.py",
        "lee_12345_67890_exercise_03_2-1.py",
        "lee_LATE_12345_67890_exercise_03_2.py",
        "Ada Lovelace_1234_assignsubmission_file_exercise_03_2.py",
        "smith_1234_exercise_03_2.py",
        "exercise_03 and exercise_03_2.py",
        "Exercise_03_2.PY",
        "--exercise_03_2.py",
    ],
)
def test_a_file_is_known_by_any_name_that_a_browser_or_platform_gives_it(students, name):
    assert handed_in(students.file(name, RIGHT)).text == RIGHT


def test_files_are_told_apart_by_folder_and_by_the_names_that_platforms_write():
    of = {
        "03_ddp.ipynb": ".",
        "ada/03_ddp.ipynb": "ada",
        "all/lee_12345_67890_03_ddp.ipynb": "all/lee_12345",
        "all/lee_12345_67891_exercise_03_3-1.py": "all/lee_12345",
        "all/lee_LATE_12345_67899_exercise_04_1.py": "all/lee_12345",
        "all/kim_54321_67890_exercise_03_3.py": "all/kim_54321",
        "all/Ada Lovelace_77_assignsubmission_file_exercise_03_3.py": "all/Ada Lovelace_77",
        "all/my own exercise_03_3.py": "all",  # a student chose this name
    }
    assert {name: submissions.student(submissions.Path(name)) for name in of} == of


def counted(paths) -> list[str]:
    found = [each for path in paths for each in submissions.read(path)]
    best = submissions.counting(found)
    return [each.file.name for each in best.values() if each.exercise.number == "03.2"]


def test_an_exercise_counts_once_for_each_student(students):
    names = ["exercise_03_2.py", "b exercise_03_2.py", "a_exercise_03_2.py"]
    files = [students.file(name, RIGHT) for name in names]
    book = students.notebook("03_ddp.ipynb", f"{MAGIC}\n{RIGHT}")
    assert counted([*files, book]) == ["03_ddp.ipynb"]
    assert counted([book, *files]) == ["a_exercise_03_2.py"]
    others = [students.file(f"{name}/exercise_03_2.py", RIGHT) for name in ("ada", "bob")]
    assert counted([*files, *others]) == ["a_exercise_03_2.py", *["exercise_03_2.py"] * 2]


def test_of_several_downloads_the_last_counts_in_whatever_order_they_are_named(students):
    names = ["exercise_03_2-1.py", "exercise_03_2-10.py", "exercise_03_2-2.py", "exercise_03_2.py"]
    assert counted([students.file(name, RIGHT) for name in names]) == ["exercise_03_2-10.py"]


def test_a_stub_never_counts_in_place_of_an_answer(students):
    given = submissions.notebook.given()["exercise_03_2.py"]
    stub = students.notebook("03_ddp (1).ipynb", f"{MAGIC}\n{given}")
    assert counted([students.file("exercise_03_2.py", RIGHT), stub]) == ["exercise_03_2.py"]


CELLS = json.dumps({"cells": [{"cell_type": "code", "source": f"{MAGIC}\nmine = 'é'"}]})
PYTHON = "mine = 'é'\n"


@pytest.mark.parametrize(("name", "text"), [("03.ipynb", CELLS), ("exercise_03_2.py", PYTHON)])
class TestEncodings:
    def test_a_byte_order_mark_is_no_matter(self, students, name, text):
        path = students.file(name, codecs.BOM_UTF8 + text.encode())
        assert handed_in(path).text == PYTHON

    @pytest.mark.parametrize(
        ("encoding", "said"),
        [
            ("utf-16", "is encoded in UTF-16:"),
            ("utf-32", "is encoded in UTF-32:"),
            ("utf-16-le", "UTF-16 or UTF-32, without a byte-order mark"),
            ("utf-16-be", "UTF-16 or UTF-32, without a byte-order mark"),
        ],
    )
    def test_another_encoding_is_named(self, students, name, text, encoding, said):
        path = students.file(name, text.encode(encoding))
        with pytest.raises(InputError, match=said):
            submissions.read(path)

    def test_the_first_byte_that_is_not_in_utf_8_is_named(self, students, name, text):
        path = students.file(name, text.replace("\\u00e9", "é").encode("latin-1"))
        with pytest.raises(InputError, match=r"not encoded in UTF-8 \(byte 0xe9 in line 1\)"):
            submissions.read(path)


def test_a_python_file_may_name_its_encoding(students):
    text = "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nmine = 'é'\n"
    path = students.file("exercise_03_2.py", text.encode("latin-1"))
    assert handed_in(path).text == text.replace("latin-1", "utf-8")
    wrong = students.file("exercise_03_3.py", text.replace("latin-1", "ascii").encode("latin-1"))
    with pytest.raises(InputError, match="is not encoded in ascii, which its first lines name"):
        submissions.read(wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nbformat": 3, "worksheets": [{"cells": []}]}', "is in format 3"),
        ("", "it is empty"),
        ('{"cells": [', "broken: save it again"),
        ('<<<<<<< HEAD\n{"cells": []}', "remove the conflict marks"),
        ("[" * 100_000, "is broken"),
        ("3", "is broken"),
        ('{"cells": [3]}', "is broken"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', "is broken"),
    ],
)
def test_what_is_wrong_with_a_notebook_is_said(students, text, said):
    with pytest.raises(InputError, match=said):
        submissions.read(students.file("03.ipynb", text))


def test_what_is_no_file_or_too_large_is_one_row_and_is_not_waited_for(students, capsys):
    names = [
        "folder.ipynb",
        "pipe.ipynb",
        "notes.txt",
        "large.ipynb",
        "nowhere.ipynb",
        "todo.ipynb",
    ]
    folder, pipe, notes, large, nowhere, todo = files = [students.folder / name for name in names]
    folder.mkdir()
    os.mkfifo(pipe)
    notes.touch()
    large.touch()
    os.truncate(large, submissions.MOST_BYTES + 1)
    nowhere.symlink_to("no-such-file")
    students.notebook(todo.name, 'check("03.1")')
    assert grade(files, 60, only=["03.1"]) == 3
    assert capsys.readouterr().out.endswith("0 of 1 passed, 1 to do, 5 files blocked\n")


def test_a_reader_that_fails_is_one_row(students, capsys, monkeypatch):
    def failing(data, name):
        raise RecursionError("maximum recursion depth exceeded" if name == "bad.ipynb" else "no")

    monkeypatch.setattr(submissions.texts, "python_source", failing)
    bad = students.file("exercise_03_2.py", RIGHT)
    assert grade([bad, students.notebook("03.ipynb", 'check("03.1")')], 60, only=["03.1"]) == 3
    out = capsys.readouterr().out
    assert "exercise_03_2.py cannot be read" in out or "cannot be read: RecursionError" in out
    assert out.endswith("0 of 1 passed, 1 to do, 1 file blocked\n")


@pytest.mark.parametrize("name", ["--json.ipynb", "--only=03.1 exercise_03_1.py", "-h.ipynb"])
def test_a_file_is_no_option_whatever_its_name_is(students, name, monkeypatch, capsys):
    text = json.dumps({"cells": [{"cell_type": "code", "source": 'check("03.1")'}]})
    students.file(name, text if name.endswith("ipynb") else "")
    monkeypatch.chdir(students.folder)
    assert main(["grade", name, "--only", "03.1"]) == 1
    assert capsys.readouterr().out.startswith(f"{name}\n")
