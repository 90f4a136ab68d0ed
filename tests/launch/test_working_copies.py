"""A student's own copy of a notebook does what the course's does."""

import nbformat
import pytest

from course_utils import paths
from tools.__main__ import main

CELLS = [
    "from course_utils import check, load_worker",
    "%torchrun -n 2 hello.py",  # missing in workers/, so it comes from the course's notebooks
    "%%worker mine.py\nimport tape",
    'print(load_worker("mine.py").tape.__name__)',
    'check("00.1")',
]


@pytest.mark.timeout(180)
def test_magics_worker_files_checks_and_execute_work_in_a_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    path = paths.my() / "00_mine.ipynb"
    cells = [nbformat.v4.new_markdown_cell("# 00 · Mine")]
    cells += map(nbformat.v4.new_code_cell, CELLS)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    assert main(["execute", str(path)]) == 0
    shown = [
        "".join(output.get("text", "") for output in cell.outputs)
        for cell in nbformat.read(path, 4).cells[1:]
        if cell.cell_type == "code"
    ]
    first, imported, launched, written, module, checked = shown
    assert (first, imported, module) == ("", "", "tape\n")
    assert "together we have 3" in launched
    assert written == "workers/mine.py written: 1 line\n"
    assert checked.endswith(": to do\n")
    assert sorted(each.name for each in paths.workers().glob("[hmt]*.py")) == [
        *("hello.py", "mine.py", "tape.py")
    ]
