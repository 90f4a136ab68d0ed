"""How `./run.sh test` runs the tests: each pass once, and each notebook as a whole."""

import os
import subprocess
import sys

import nbformat
import pytest

import tests.__main__ as passes

CELLS = ["number = 1", "assert number == 1", "assert number == 1"]


@pytest.mark.parametrize(
    ("statuses", "status"), [([0, 0, 0], 0), ([0, 1, 0], 1), ([2, 1, 0], 2), ([0, 0, 5], 5)]
)
def test_every_pass_runs_once_and_the_first_failure_is_the_status(monkeypatch, statuses, status):
    called, answers = [], iter(statuses)

    def pytest_of_a_pass(*arguments):
        called.append(arguments)
        return next(answers)

    monkeypatch.setattr(passes, "pytest", pytest_of_a_pass)
    assert passes.main() == status
    assert called == passes.PASSES


def test_the_cells_of_a_notebook_stay_in_one_worker(tmp_path):
    # Only the plugins it needs: to import all others takes longer than this test.
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist -p nbval.plugin\n")
    for name in ("tests/browser/test_a.py", "notebooks/00_b.ipynb", "notebooks/01_c.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("def test_a(): pass\n")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    for path in tmp_path.glob("notebooks/*"):
        nbformat.write(book, path)
    (arguments,) = (words for words in passes.PASSES if "notebooks" in words)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout  # another worker's kernel would not know `number`
    assert "7 passed" in done.stdout
