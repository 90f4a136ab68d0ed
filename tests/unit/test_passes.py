"""How `./run.sh test` runs the tests: each pass once, and each notebook as a whole."""

import os
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

import tests.__main__ as passes
from course_utils import paths

CELLS = ["import torch", *["assert torch.get_num_threads() == 1"] * 9]

SHOWN = [  # what a cell prints, and what is saved
    ("0.weight  1.00  1e-16", "0.weight  1.00  2e-16"),
    ("worst 0   bound 1e-10", "worst 1e-15   bound 1e-10"),
    ("3 ranks   0       1e-10", "3 ranks   1e-15   1e-10"),
    ("within 1e-12 of it", "within 1e-14 of it"),
    ("0.weight  0.51  2e-01", "0.weight  0.51  1e-01"),
    ("worst 0   bound 0", "worst 1   bound 0"),
    ("3e-06", "4e-06"),
    ("0", "1e-12"),  # with no bound beside it
]


@pytest.fixture
def called(tmp_path, monkeypatch):
    """What is run and installed, in order; `answers` are the passes' exit statuses."""
    called = SimpleNamespace(calls=[], answers=iter([0] * 9))

    def pytest_of_a_pass(*arguments):
        called.calls.append(arguments)
        return next(called.answers)

    monkeypatch.setattr(passes, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(passes, "pytest", pytest_of_a_pass)
    monkeypatch.setattr(passes.ci, "main", lambda: called.calls.append("install"))
    monkeypatch.delenv("CI", raising=False)
    return called


@pytest.mark.parametrize(
    ("statuses", "status"), [([0, 0, 0], 0), ([0, 1, 0], 1), ([2, 1, 0], 2), ([0, 0, 5], 5)]
)
def test_every_pass_runs_once_and_the_first_failure_is_the_status(called, statuses, status):
    called.answers = iter(statuses)
    assert passes.main() == status
    assert called.calls == [passes.SIDE, *passes.PASSES]


def test_in_ci_what_needs_no_extras_runs_before_they_are_installed(called, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert passes.main() == 0
    bare, install, extra, *others = called.calls
    assert bare == (*passes.SIDE, "-m", "not extra")
    assert install == "install"
    assert extra == (*passes.SIDE, "-m", "extra")
    assert others == passes.PASSES


@pytest.mark.timeout(120)
def test_what_failed_in_any_pass_is_listed_at_the_end(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(passes, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(passes, "ROOT", tmp_path)
    monkeypatch.setattr(passes, "SIDE", ("test_a.py",))
    monkeypatch.setattr(passes, "PASSES", [("test_b.py",), ("test_c.py",)])
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to import them takes longest
    for name, value in {"a": 1, "b": 2, "c": 1}.items():
        (tmp_path / f"test_{name}.py").write_text(f"def test_one():\n    assert {value} == 1\n")
    assert passes.main() == 1
    *_, last_but_one, last = capfd.readouterr().out.splitlines()
    assert "1 passed" in last_but_one
    assert last == "FAILED test_b::test_one: assert 2 == 1"


@pytest.mark.timeout(120)
def test_the_cells_of_a_notebook_stay_in_one_worker_and_keep_to_one_core(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    for name in ("a", "b"):
        nbformat.write(book, tmp_path / f"{name}.ipynb")
    said = pytest_says(tmp_path, "-p", "xdist", "--nbval-lax", "-n", "2")
    assert "20 passed" in said, said  # another worker's kernel knows no `torch`


@pytest.mark.timeout(120)
def test_only_the_size_of_a_rounding_error_may_differ(tmp_path):
    cells = []
    for executed, saved in SHOWN:
        output = nbformat.v4.new_output("stream", text=f"{saved}\n")
        cells.append(
            nbformat.v4.new_code_cell(f'print("{executed}")', outputs=[output], execution_count=1)
        )
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    said = pytest_says(tmp_path, "--nbval")
    failed = [number for number in range(len(SHOWN)) if f"FAILED a.ipynb::Cell {number} " in said]
    assert failed == [4, 5, 6, 7], said


def pytest_says(folder, *arguments):
    """Run pytest on a folder of notebooks; return what it prints."""
    # Only the plugins it needs: to import all others takes longer than these tests.
    plugins = ["-p", "nbval.plugin", "-p", "tests.session"]
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(paths.ROOT)}
    settings = {"PYTEST_ADDOPTS", "OMP_NUM_THREADS"}  # of the tests around this one
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *arguments, str(folder)],
        cwd=folder,
        env={name: os.environ[name] for name in os.environ.keys() - settings} | ours,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout


def test_every_call_of_pytest_has_what_the_session_needs(request):
    assert request.config.pluginmanager.has_plugin("tests.session")
