"""`./run.sh clean`: what it removes, and what it keeps."""

import hashlib
import json

import pytest

from course_utils import paths
from course_utils.exercises import find


@pytest.fixture
def course(small_course):
    """A small course whose notebook writes `two.py` in two cells, with its worker files."""
    cells = [
        "%%worker two.py\nfirst = 1",
        "%%worker --append two.py\nsecond = 2",
        "%%worker --ours 04.2 answer.py\n# yours or ours",
    ]
    book = {"cells": [{"cell_type": "code", "metadata": {}, "source": text} for text in cells]}
    folder = small_course.root / "notebooks"
    (folder / "04_two.ipynb").write_text(json.dumps(book))
    small_course("extract")
    (small_course.home / ".runs" / "x").mkdir(parents=True)
    return small_course


def left(course):
    """What lies in the course's home, as text by path."""
    files = (path for path in course.home.rglob("*") if path.is_file())
    return {str(path.relative_to(course.home)): path.read_text() for path in files}


def test_what_the_notebooks_write_is_removed(course):
    assert {path.name for path in course.home.glob("workers/*.py")} == {
        *("count.py", "prove.py", "two.py", "answer.py")
    }
    assert course("clean").returncode == 0
    assert list(course.home.iterdir()) == []
    assert course("clean").returncode == 0  # nothing is there


def test_what_the_student_changed_or_added_is_kept_in_a_dated_folder_that_is_named(course):
    workers = course.home / "workers"
    (workers / "count.py").write_text("mine")
    (workers / "lib").mkdir()
    (workers / "lib/two.py").write_bytes(b"\xff")
    done = course("clean")
    (kept,) = course.home.iterdir()
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*.py")) == [
        "count.py",
        "lib/two.py",
    ]
    assert (kept / "count.py").read_text() == "mine"
    assert f"moved 2 files that you changed in workers/ to {kept}\n" in done.stdout
    assert kept.match("workers-kept-[0-9]*-[0-9]*-[0-9]*-[0-9]*")


def test_a_file_that_has_only_the_first_of_its_cells_is_not_changed(course):
    (course.home / "workers/two.py").write_text("first = 1\n")
    course("clean")
    assert list(course.home.iterdir()) == []


def passes(course, number, text):
    """A student's answer that has passed."""
    workers = course.home / "workers"
    noted = workers / ".passed.json"
    passed = json.loads(noted.read_text()) if noted.exists() else {}
    passed[number] = hashlib.sha256(text.encode()).hexdigest()
    noted.write_text(json.dumps(passed))
    (workers / f"exercise_{number.replace('.', '_')}.py").write_text(text)


@pytest.mark.parametrize("text", [find("04.2").ours, "mine = 1\n"], ids=["ours", "theirs"])
def test_what_has_passed_stays_and_so_does_what_is_known_of_it(course, text):
    passes(course, "04.2", "mine = 1\n")
    passes(course, "01.1", "mine = 2\n")
    workers = course.home / "workers"
    (workers / "answer.py").write_text(text)  # from before the answer had passed, or since
    (workers / "lib/__pycache__").mkdir(parents=True)
    (workers / "lib/__pycache__/x.pyc").touch()
    done = course("clean")
    assert "01.1, 04.2" in done.stdout
    assert [path.name for path in course.home.iterdir()] == ["workers"]
    assert {path.name for path in workers.iterdir()} == {
        *("exercise_01_1.py", "exercise_04_2.py", ".passed.json")
    }
    assert json.loads((workers / ".passed.json").read_text()).keys() == {"01.1", "04.2"}
    course("extract")
    assert (workers / "answer.py").read_text() == "mine = 1\n"  # the course runs on it again
    assert course("clean", "--all").returncode == 0
    assert list(course.home.iterdir()) == []


def test_an_answer_that_was_changed_after_it_had_passed_moves_aside(course):
    passes(course, "04.2", "mine = 1\n")
    (course.home / "workers/exercise_04_2.py").write_text("mine = 2\n")
    done = course("clean")
    (kept,) = course.home.iterdir()
    assert [path.name for path in kept.iterdir()] == ["exercise_04_2.py"]
    assert "passed" not in done.stdout


def test_caches_are_no_work_of_the_student(course):
    for name in ("__pycache__/two.pyc", ".ipynb_checkpoints/two-checkpoint.py"):
        path = course.home / "workers" / name
        path.parent.mkdir()
        path.write_text("mine")
    course("clean")
    assert list(course.home.iterdir()) == []


def test_two_calls_within_a_minute_keep_both_versions(course):
    for text in ("one", "two"):
        course("extract")
        (course.home / "workers/count.py").write_text(text)
        course("clean")
    assert sorted(left(course).values()) == ["one", "two"]


def test_all_deletes_what_was_changed_and_what_was_kept(course):
    (course.home / "workers/count.py").write_text("mine")
    course("clean")
    course("extract")
    (course.home / "workers/count.py").write_text("mine too")
    assert course("clean", "--all").returncode == 0
    assert list(course.home.iterdir()) == []


def test_nothing_is_removed_while_a_notebook_cannot_be_read(course):
    (course.home / "workers/count.py").write_text("mine")
    (course.root / "notebooks/05_broken.ipynb").write_text("<<<<<<< HEAD\n")
    before = left(course)
    done = course("clean")
    assert done.returncode == 2
    assert "05_broken.ipynb is broken" in done.stderr
    assert left(course) == before
    assert course("clean", "--all").returncode == 0
    assert list(course.home.iterdir()) == []


def test_git_ignores_what_is_kept():
    assert "workers-kept-*/" in (paths.ROOT / ".gitignore").read_text().splitlines()


def test_the_user_s_own_home_is_left_alone(course, monkeypatch):
    monkeypatch.setenv("HOME", str(course.home))
    before = left(course)
    done = course("clean", "--all")
    assert done.returncode == 2
    assert "COURSE_HOME is your home folder" in done.stderr
    assert left(course) == before
