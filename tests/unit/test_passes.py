"""How `./run.sh test` runs the tests: tests/__main__.py on a project with tests of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

import tests.__main__ as passes
from course_utils import paths
from tests import longest_first

PLUGINS = "-p xdist"  # and not nbval, which takes long to import
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
    for name in ("tests", "tests/browser", "tests/alone", "notebooks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "fails.py").write_text(FAILS_AT_FIRST)
    # One worker a pass: to start two or three takes longer than all else in these tests.
    one_worker = re.sub(r'"-n", "\d"', '"-n", "1"', Path(passes.__file__).read_text())
    (tmp_path / "tests/__main__.py").write_text(one_worker)
    shutil.copy(longest_first.__file__, tmp_path / "tests")
    (tmp_path / "tests/browser/test_seen.py").write_text("def test_seen(): pass\n")
    (tmp_path / "tests/alone/test_alone.py").write_text("def test_b(): pass\n")
    (tmp_path / "notebooks/test_of_a_notebook.py").write_text("def test_c(): pass\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {PLUGINS}\n")

    def run(**files: str):
        for name, text in files.items():
            (tmp_path / "tests" / f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "tests"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=280,
        )
        return done.returncode, done.stdout

    run.folder = tmp_path
    return run


def test_all_pass(run):
    status, out = run(test_x="def test_a(): pass\n")
    assert status == 0
    assert [int(each) for each in re.findall(r"(\d) passed", out)] == [1, 2, 1]


@pytest.mark.parametrize("name", ["test_y", "alone/test_y"])
def test_one_that_fails_twice_has_failed_and_all_others_run(run, name):
    status, out = run(test_x="def test_a(): pass\n", **{name: "def test_f(): assert 0\n"})
    assert status == 1
    assert sum(map(int, re.findall(r"(\d) passed", out))) == 4
    assert f"FAILED tests/{name}.py::test_f" in out


def test_one_that_passes_by_itself_is_named_as_unsteady(run):
    source = "import fails, pytest\n@pytest.mark.parametrize('x', ['of 2, one'])\n"
    source += "def test_c(x): fails.once()\n"
    status, out = run(test_x=source)
    assert status == 0
    assert "unsteady:\n  tests/test_x.py::test_c[of 2, one]\n" in out


def test_one_that_passes_by_itself_is_named_beside_one_that_fails_twice(run):
    source = "import fails\ndef test_a(): assert 0\ndef test_c(): fails.once()\n"
    status, out = run(test_x=source)
    assert status == 1
    assert out.count("unsteady:\n  tests/test_x.py::test_c\n") == 1


def test_a_notebook_is_tried_again_as_a_whole(run):
    cells = ["import fails", "fails.once()", "fails"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbformat.write(book, run.folder / "notebooks/book.ipynb")
    ini = run.folder / "pytest.ini"
    ini.write_text(ini.read_text().replace(PLUGINS, f"{PLUGINS} -p nbval.plugin --nbval-lax"))
    main = run.folder / "tests/__main__.py"
    of_notebooks = "PASSES = [each for each in PASSES if 'notebooks' in each]\n"
    main.write_text(main.read_text().replace("SOME_FAILED", f"{of_notebooks}SOME_FAILED", 1))
    status, out = run()
    assert status == 0
    assert "unsteady:\n  notebooks/book.ipynb\n" in out


def test_a_file_that_cannot_be_read_is_a_failure(run):
    status, out = run(test_x="def test_a(): pass\n", test_y="def test_(: pass")
    assert status != 0
    assert "SyntaxError" in out


def test_the_longest_notebooks_come_first():
    names = ["x.py::test_7", "01_a.ipynb::Cell", "x.py::test_y[05_b]", "08_c.ipynb::Cell"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    longest_first.pytest_collection_modifyitems(items)
    assert [names.index(item.nodeid) for item in items] == [2, 0, 3, 1]


def test_every_notebook_has_its_place():
    there = [path.name[:2] for path in paths.NOTEBOOKS.glob("*.ipynb")]
    assert sorted(longest_first.LONGEST_FIRST) == sorted(there)
