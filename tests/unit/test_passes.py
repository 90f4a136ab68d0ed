"""How `./run.sh test` runs the tests: tests/__main__.py on a project with tests of its own."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import tests.__main__ as passes

FAILS_AT_FIRST = """
from pathlib import Path
def once():
    if not Path("tried").exists():
        Path("tried").touch()
        raise AssertionError("the first time")
"""


@pytest.fixture
def run(tmp_path):
    """Run the tests of a project of one file, or more; give exit status and output."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/__main__.py").write_text(Path(passes.__file__).read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone: x\naddopts = --nbval-lax\n")
    (tmp_path / "fails.py").write_text(FAILS_AT_FIRST)

    def run(**files: str):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "tests"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
        return done.returncode, done.stdout

    run.folder = tmp_path
    return run


FINE = "import pytest\ndef test_a(): pass\n@pytest.mark.alone\ndef test_b(): pass\n"


def test_all_pass(run):
    status, out = run(test_x=FINE)
    assert (status, out.count("1 passed")) == (0, 2)


@pytest.mark.parametrize("name", ["test_a", "test_b"])
def test_one_that_fails_twice_has_failed_and_all_others_run(run, name):
    status, out = run(test_x=FINE.replace(f"{name}(): pass", f"{name}(): assert 0"))
    assert status == 1
    assert out.count("1 passed") == 1
    assert f"FAILED test_x.py::{name}" in out


def test_one_that_passes_by_itself_is_named_as_unsteady(run):
    source = (
        FINE + "import fails\n@pytest.mark.parametrize('x', ['of 2, one'])\n"
        "def test_c(x): fails.once()\n"
    )
    status, out = run(test_x=source)
    assert status == 0
    assert "unsteady:\n  test_x.py::test_c[of 2, one]\n" in out


def test_a_notebook_is_tried_again_as_a_whole(run):
    cells = ["import fails", "fails.once()", "fails"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbformat.write(book, run.folder / "book.ipynb")
    status, out = run(test_x=FINE)
    assert status == 0
    assert "unsteady:\n  book.ipynb\n" in out


def test_a_file_that_cannot_be_read_is_a_failure(run):
    status, out = run(test_x=FINE, test_y="def test_(: pass")
    assert status != 0
    assert "SyntaxError" in out
