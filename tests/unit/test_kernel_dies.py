"""A kernel that dies under `execute` or nbval ends it at once, with a sentence."""

import os
import subprocess
import sys
import time

import nbformat
import pytest

from course_utils import paths

DIES = "import os\nos.kill(os.getpid(), 9)"
ENDS = "print('before')\nexit()"


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook with these cells."""

    def write(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        for number, cell in enumerate(cells, 1):
            cell.execution_count = number
        path = tmp_path / "dies.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    return write


def call(*command, cwd=paths.ROOT):
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("last", [DIES, "import sys\nsys.stdout.flush()\nos._exit(0)"])
def test_execute_leaves_the_file_as_it_was_and_names_the_cell(notebook, last):
    path = notebook("import os\nprint(1)", last, "print(3)")
    before = path.read_bytes()
    done = call("tools", "execute", path)
    assert done.returncode == 2
    first = last.partition("\n")[0]
    assert f"dies.ipynb stays as it was: Kernel died in the cell that begins with `{first}`" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before


def test_execute_still_saves_what_a_cell_raised(notebook):
    path = notebook("1 / 0")
    assert call("tools", "execute", path).returncode != 0
    assert "ZeroDivisionError" in path.read_text()


def test_nbval_fails_at_once(notebook):
    path = notebook("print(1)", DIES, "print(3)")
    began = time.monotonic()
    # Its own cells may take 300 s: that it did not wait for them is what is tested.
    done = call("pytest", "-q", "-c", paths.ROOT / "pyproject.toml", path)
    assert time.monotonic() - began < 100
    assert "the kernel died in this cell" in done.stdout
