"""The magics, in an IPython shell."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils import LaunchError, load_ipython_extension, paths
from course_utils.errors import InputError


@pytest.fixture
def shell(monkeypatch):
    """A shell of its own with the magics."""
    shell = InteractiveShell()
    load_ipython_extension(shell)
    monkeypatch.setattr("course_utils.notebook.magics._shell", lambda: shell)
    yield shell
    for path in paths.workers().glob("*.py"):
        path.unlink()


def test_a_worker_cell_writes_its_file(shell, capsys):
    shell.run_cell_magic("worker", "one.py", "x = 1\ny = 2\n")
    assert capsys.readouterr().out == "workers/one.py written: 2 lines\n"
    assert (paths.workers() / "one.py").read_text() == "x = 1\ny = 2\n"


def test_append_adds_once(shell, capsys):
    shell.run_cell_magic("worker", "one.py", "x = 1\n")
    for _ in range(2):
        shell.run_cell_magic("worker", "--append one.py", "y = 2\n")
    assert (paths.workers() / "one.py").read_text() == "x = 1\n\n\ny = 2\n"
    assert capsys.readouterr().out.splitlines() == [
        "workers/one.py written: 1 line",
        "workers/one.py added to: 4 lines",
        "workers/one.py added to: 4 lines",
    ]


def test_append_to_nothing_begins_the_file(shell):
    shell.run_cell_magic("worker", "--append new.py", "y = 2\n")
    assert (paths.workers() / "new.py").read_text() == "y = 2\n"


def test_torchrun_writes_launches_shows_and_binds(shell, capsys):
    cell = "import os, sys\nprint(os.environ['RANK'], sys.argv[1:])\n"
    shell.run_cell_magic("torchrun", "-n 3 --as three args.py --steps 4 'a b'", cell)
    three = shell.user_ns["three"]
    assert three.ok
    assert len(three.ranks) == 3
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "torchrun --standalone --nproc-per-node 3 workers/args.py --steps 4 'a b'"
    assert "['--steps', '4', 'a b']" in "".join(out)
    shell.run_line_magic("torchrun", "--nproc-per-node 2 args.py")
    assert shell.user_ns["run"].ranks[1].stdout == "1 []\n"


def test_a_failed_run_is_bound_too(shell):
    with pytest.raises(LaunchError, match="raised RuntimeError: no"):
        shell.run_cell_magic("torchrun", "--as broken broken.py", "raise RuntimeError('no')")
    assert shell.user_ns["broken"].verdict.kind == "raised"


def test_a_solution_is_folded_in(shell, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda card, raw: shown.append(card))
    shell.run_line_magic("solution", "07.1")
    assert "<details><summary>Solution of 07.1 causal mask" in shown[0]["text/html"]
    assert "def causal_mask" in shown[0]["text/plain"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-n 0 x.py", "from 1 to 64"),
        ("-n 1000 x.py", "from 1 to 64"),
        ("-n abc x.py", "'abc' is not a whole number"),
        ("--timeout -1 x.py", "above 0"),
        ("--as 9 x.py", "must be one that Python allows"),
        ("--no-such x.py", "usage: %torchrun"),
        ("", "required: file"),
        ("../x.py", "outside workers/"),
        ("x.txt", "must end in .py"),
        ("x.py  # rank 1's turn", "stands alone in the line x.py  # rank 1's turn: put"),
        ("x.py \\", "a backslash before it"),
    ],
)
def test_a_bad_line_is_refused_in_one_sentence(shell, line, said):
    with pytest.raises(InputError) as caught:
        shell.run_cell_magic("torchrun", line, "print(1)\n")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_worker_line_that_cannot_be_split_is_refused_in_one_sentence(shell):
    with pytest.raises(InputError, match="a quotation mark or a backslash stands alone"):
        shell.run_cell_magic("worker", "x.py 'y", "print(1)\n")
