"""A notebook alone, in a Python with torch and without the course: it gets the course and runs."""

import json
import site

import nbformat
import pytest
from nbclient import NotebookClient

from tests.guest import Guest

ADD_UP = """%%torchrun -n 2 alone.py
import collectives, torch
import torch.distributed as dist
from nbtorchrun.worker import init
init()
print(collectives.all_reduce(torch.ones(1)).item())
"""


@pytest.mark.timeout(180)
def test_a_notebook_alone_starts_ranks_and_finds_the_other_worker_files(tmp_path, monkeypatch):
    guest = Guest(tmp_path)
    # All packages of this Python; the course is not found there, as it is installed by a .pth file.
    (guest.packages / "ours.pth").write_text("\n".join(site.getsitepackages()))
    guest.publish("course_utils", "nbtorchrun", "tools", "notebooks")
    kernel = tmp_path / "jupyter/kernels/theirs"
    kernel.mkdir(parents=True)
    command = [str(guest.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": command, "display_name": "Theirs", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(described))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    for name in ("COURSE_HOME", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    sources = [guest.first_cell(), "from course_utils import launch", ADD_UP]
    book = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    where = {"metadata": {"path": str(guest.folder)}}
    NotebookClient(book, timeout=150, kernel_name="theirs", resources=where).execute()
    first, imported, launched = (cell.outputs for cell in book.cells)
    assert (first, imported) == ([], [])
    text = "".join(output["text"] for output in launched)
    assert "rank 1 │ 2.0\n" in text
    written = (guest.folder / "course/workers").glob("*.py")
    assert sorted(path.name for path in written) == ["alone.py", "collectives.py"]
