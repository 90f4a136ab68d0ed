"""What tests/session.py does for every call of pytest."""

import os
import subprocess
import sys

import nbformat
import pytest

from course_utils import paths

CELLS = ["number = 1", *["assert number == 1"] * 9]


@pytest.mark.parametrize("arguments", ["-n 2", "-n 2 --dist worksteal"])
@pytest.mark.timeout(120)
def test_the_cells_of_a_notebook_stay_in_one_worker(tmp_path, arguments):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    for name in ("a", "b"):
        nbformat.write(book, tmp_path / f"{name}.ipynb")
    # Only the plugins it needs: to import all others takes longer than this test.
    plugins = "-p xdist -p nbval.plugin -p tests.session --nbval-lax"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins.split(), *arguments.split(), str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "20 passed" in done.stdout, done.stdout  # another worker's kernel knows no `number`


def test_every_call_of_pytest_has_it(request):
    assert request.config.pluginmanager.has_plugin("tests.session")
