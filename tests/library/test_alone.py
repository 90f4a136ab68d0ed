"""nbtorchrun without the course: its wheel in an environment of its own, and in any folder."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import torch
import torch.distributed as dist
from nbtorchrun.worker import device, init, report

init()
total = torch.tensor(float(dist.get_rank()), device=device())
dist.all_reduce(total)
report(total=total.item())
print(sys.argv[1:], total.item())
if "fail" in sys.argv and dist.get_rank() == 1:
    raise ValueError("on purpose")
"""
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell.run_line_magic("load_ext", "nbtorchrun")
shell.run_cell_magic("torchrun", "-n 3 --as mine other.py", open("train.py").read())
print("reported", shell.user_ns["mine"].series("total", rank=2))
print("course", "course_utils" in sys.modules)
"""
PROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "nbtorchrun"
version = "0"
[tool.setuptools]
packages = {packages}
package-data = {{ nbtorchrun = ["**/*.css"] }}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the library's folder, and of nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns("__pycache__", "*.ipynb")
    shutil.copytree(ROOT / "nbtorchrun", folder / "nbtorchrun", ignore=left_out)
    packages = ["nbtorchrun", *(f"nbtorchrun.{p.name}" for p in (ROOT / "nbtorchrun").iterdir()
                                if p.is_dir() and p.name != "__pycache__")]  # fmt: skip
    (folder / "pyproject.toml").write_text(PROJECT.format(packages=sorted(packages)))
    build = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    built = subprocess.run(
        [sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=True
    )
    return folder / built.stdout.split()[-1]


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A new environment that has the wheel, and beside it only what is installed here."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    # Torch and IPython from here. Not this checkout: that is found by a file of `pip install -e`,
    # which only a folder of packages reads, and this is a path.
    (packages / "installed.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    return folder / "bin/python"


@pytest.fixture
def run(python, tmp_path):
    """Run this Python in a folder that holds `train.py`; gives the status and the output."""
    (tmp_path / "train.py").write_text(SCRIPT)
    known = {k: v for k, v in os.environ.items() if not k.startswith(("COURSE_", "PYTHONPATH"))}
    known.pop("VIRTUAL_ENV", None)  # of the shell, which IPython warns of
    environ = known | {"NBTORCHRUN_HOME": str(tmp_path / "home")}

    def call(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [python, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return call


def test_the_wheel_has_no_course(run):
    status, said = run("-c", "import nbtorchrun; print(nbtorchrun.__file__); import course_utils")
    assert "alone" in said.splitlines()[0]
    assert (status, said.splitlines()[-1]) == (
        1,
        "ModuleNotFoundError: No module named 'course_utils'",
    )


def test_a_script_runs_from_a_terminal_with_options_before_and_after_it(run):
    status, said = run("-m", "nbtorchrun", "-n", "2", "train.py", "--stall", "20", "--lr", "1")
    assert status == 0, said
    assert "[rank 1] ['--lr', '1'] 1.0" in said.splitlines()


def test_a_failure_is_told_with_rank_and_line_and_gives_status_1(run):
    status, said = run("-m", "nbtorchrun", "train.py", "-n", "2", "--", "fail", "-n", "9")
    assert status == 1
    assert "[rank 0] ['fail', '-n', '9'] 1.0" in said.splitlines()
    assert "rank 1 raised ValueError: on purpose" in said.splitlines()
    assert "  train.py, line 13" in said.splitlines()


def test_a_bad_call_is_one_sentence_and_status_2(run):
    status, said = run("-m", "nbtorchrun", "train.py", "-n", "0")
    assert (status, len(said.splitlines())) == (2, 1)
    assert said.startswith("nbtorchrun: the number of ranks must be")


def test_a_cell_runs_in_any_folder(run):
    status, said = run("-c", CELLS)
    assert status == 0, said
    assert said.splitlines()[-2:] == ["reported [3.0]", "course False"]
