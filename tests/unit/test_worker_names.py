"""Worker files and what else has their name: modules that ranks need, and a student's own files."""

import copy
import errno
import fcntl
import json
import sys

import pytest

from course_utils import files, load_worker, notes, paths
from nbtorchrun import settings
from nbtorchrun.errors import InputError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    return paths.workers()


@pytest.mark.parametrize("name", ["copy.py", "random.py", "torch.py", "numpy.py", "queue.py"])
def test_a_name_that_python_and_torch_need_is_refused(home, name):
    for refused in (
        lambda: load_worker(name),
        lambda: files.write(name, "x = 1"),
        lambda: files.script_path(name),
    ):
        with pytest.raises(InputError, match=f"workers/{name} has the name of a module that"):
            refused()
    assert not list(home.glob("*.py"))
    assert sys.modules["copy"] is copy


def test_no_script_is_launched_beside_a_file_that_hides_a_module(home):
    files.write("mine.py", "x = 1")
    (home / "random.py").write_text("x = 1")
    with pytest.raises(InputError, match=r"workers/random\.py has the name of a module"):
        files.script_path("mine.py")


def test_a_package_that_the_notebook_has_imported_stays(home):
    import rich

    files.write("rich.py", "x = 1")
    with pytest.raises(InputError, match="package that this notebook has imported"):
        load_worker("rich.py")
    assert sys.modules["rich"] is rich
    files.write("mine_too.py", "x = 1")
    assert load_worker("mine_too.py").x == load_worker("mine_too.py").x == 1


def test_a_script_of_any_notebook_is_refused_too(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "_missing", None)
    monkeypatch.setattr(settings, "_folder", lambda: tmp_path)
    with pytest.raises(InputError, match="has the name of a module"):
        settings.script_path("random.py")


@pytest.mark.parametrize("file", ["model.part", ".model.py.part", "model.py.part"])
def test_writing_a_worker_file_leaves_the_files_beside_it(home, file):
    (home / file).write_text("mine")
    files.write("model.py", "x = 1")
    assert (home / file).read_text() == "mine"
    left = {path.name for path in home.iterdir()}
    assert left == {file, "model.py", ".cells.json", ".cells.lock"}


def test_what_cannot_be_written_leaves_nothing_half_written(home, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(settings.os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        settings.replace(home / "model.py", b"x = 1\n")
    assert not list(home.iterdir())


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_disk_without_locks_is_enough(home, monkeypatch, number):
    def none(*_):
        raise OSError(number, "not here")

    monkeypatch.setattr(fcntl, "flock", none)
    assert files.write("model.py", "x = 1") == "workers/model.py written: 1 line"
    assert notes.read(files.WRITTEN) == {"model.py": {"first": "x = 1\n"}}


def test_extract_writes_its_notes_once(home, monkeypatch):
    written, replace = [], settings.replace
    monkeypatch.setattr(
        settings, "replace", lambda path, data: (written.append(path.name), replace(path, data))
    )
    files.write_missing("train_lab.py", "ring_allreduce.py")
    assert written.count(files.WRITTEN) == 1
    assert set(written) - {files.WRITTEN} == set(json.loads((home / files.WRITTEN).read_text()))
