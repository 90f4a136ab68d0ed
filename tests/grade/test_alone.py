"""What keeps one answer from all others: its variables, its folder, its copy of the course."""

import os
import subprocess
import sys

import pytest

from course_utils import paths
from tools.grade.alone import MOST_FILES, MOST_WRITTEN, Folder, environment
from tools.grade.checker import Checker

OURS = {"PATH": "/bin", "LANG": "C.UTF-8", "COURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
SECRET = {
    "GITHUB_TOKEN": "x",
    "HF_TOKEN": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "SSH_AUTH_SOCK": "x",
    "PIP_INDEX_URL": "https://me:password@example.org",
    "PYTHONSTARTUP": "x",
    "LC_SECRET-1": "x",
    "MY_PATH": "x",
}


@pytest.fixture
def folder(tmp_path):
    """The folder of an answer."""
    found = Folder(tmp_path)
    found.home.mkdir()
    return found


def test_an_answer_gets_the_variables_that_it_needs_and_no_other(folder):
    given = environment(folder, OURS | SECRET | {"HOME": "/root", "COURSE_HOME": "/root"})
    own = dict.fromkeys(("HOME", "COURSE_HOME", "TMPDIR"), str(folder.home))
    assert given == OURS | own | {"PYTHONPATH": str(folder.course)}


def test_the_course_comes_from_the_copy_and_the_rest_from_where_it_is(folder):
    ours = os.pathsep.join([str(paths.ROOT), "", "/opt/packages"])
    given = environment(folder, {"PYTHONPATH": ours})
    assert given["PYTHONPATH"] == f"{folder.course}{os.pathsep}/opt/packages"


def imported_from(folder) -> str:
    """Where Python finds the check."""
    code = "import course_utils.paths as p, tools.grade, nbtorchrun; print(p.ROOT, p.LESSONS)"
    own = environment(folder, os.environ)
    asked = [sys.executable, "-P", "-c", code]
    return subprocess.run(asked, env=own, capture_output=True, text=True, timeout=60).stdout


def test_each_answer_meets_a_new_copy_that_is_closed_to_mistakes(tmp_path):
    checker, first, second = Checker(), Folder(tmp_path / "one"), Folder(tmp_path / "two")
    checker.unpack(first.course)
    place = first.course / "course_utils" / "paths.py"
    assert imported_from(first) == f"{first.course} {first.course / 'lessons'}\n"
    files = [path for path in first.course.rglob("*") if "__pycache__" not in path.parts]
    assert {path.stat().st_mode & 0o222 for path in [first.course, *files]} == {0}
    place.chmod(0o644)  # an answer can: the files are its own
    place.write_text("changed")
    checker.unpack(second.course)
    theirs = second.course / place.relative_to(first.course)
    assert theirs.read_bytes() == (paths.ROOT / "course_utils" / "paths.py").read_bytes()
    for path in (first.course, second.course):
        subprocess.run(["chmod", "-R", "u+w", path], check=True)


def test_all_files_of_an_answer_have_one_limit(folder):
    large = folder.home / "large"
    large.mkdir()
    size = MOST_WRITTEN // 8
    for number in range(7):
        (large / str(number)).write_bytes(bytes(size))
    assert folder.too_much() == ""
    for number in range(7, 9):
        (large / str(number)).write_bytes(bytes(size))
    assert folder.too_much() == "your code wrote more than 200 MB to files"


def test_the_number_of_files_has_a_limit(folder):
    for number in range(MOST_FILES // 2):
        (folder.home / str(number)).mkdir()
        (folder.home / str(number) / "empty").touch()
    assert folder.too_much() == ""
    (folder.home / "one more").touch()
    assert "more than 5000 files and folders" in folder.too_much()


def test_folders_in_folders_without_end_are_found(folder):
    os.chdir(folder.home)
    try:
        for _ in range(60):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
    finally:
        os.chdir(paths.ROOT)
    assert "a folder that cannot be read (File name too long)" in folder.too_much()
    subprocess.run(["rm", "-rf", folder.home], check=True)
