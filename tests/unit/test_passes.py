"""How `./run.sh test` runs the tests: each pass once, and each notebook as a whole."""

import os
import subprocess
import sys

import nbformat
import pytest

import tests.__main__ as passes
from course_utils import paths

CELLS = ["number = 1", *["assert number == 1"] * 9]


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


@pytest.mark.timeout(120)
def test_the_cells_of_a_notebook_stay_in_one_worker(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    for name in ("a", "b"):
        nbformat.write(book, tmp_path / f"{name}.ipynb")
    # Only the plugins it needs: to import all others takes longer than this test.
    plugins = "-p xdist -p nbval.plugin -p tests.session --nbval-lax"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins.split(), "-n", "2", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "20 passed" in done.stdout, done.stdout  # another worker's kernel knows no `number`


def test_every_call_of_pytest_has_what_the_session_needs(request):
    assert request.config.pluginmanager.has_plugin("tests.session")
