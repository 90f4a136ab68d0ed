"""The magics, in an IPython shell."""

import shutil

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils import LaunchError, answers, load_ipython_extension, paths, predict
from nbtorchrun.errors import InputError


@pytest.fixture
def shell():
    """A shell of its own with the magics."""
    shell = InteractiveShell()
    load_ipython_extension(shell)
    yield shell
    shutil.rmtree(paths.workers())


def test_a_worker_cell_writes_its_file(shell, capsys):
    shell.run_cell_magic("worker", "one.py", "x = 1\ny = 2\n")
    assert capsys.readouterr().out == "workers/one.py written: 2 lines\n"
    assert (paths.workers() / "one.py").read_text() == "x = 1\ny = 2\n"


def test_a_mistake_in_the_syntax_is_said_when_the_cell_is_written(shell, capsys):
    shell.run_cell_magic("worker", "bad.py", "x = 1\ny = = 2\n")
    written, said = capsys.readouterr().out.splitlines()
    assert written == "workers/bad.py written: 2 lines"
    assert said == "workers/bad.py, line 2: SyntaxError: invalid syntax"


def test_append_to_nothing_begins_the_file(shell):
    shell.run_cell_magic("worker", "--append new.py", "y = 2\n")
    assert (paths.workers() / "new.py").read_text() == "y = 2\n"


THREE = [
    ("a", "%%worker one.py", "x = 1\n"),
    ("b", "%%worker --append one.py", "def y():\n    return 2\n"),
    ("c", "%%worker --append one.py", "z = 3\n"),
]


def run_cells(shell, *cells, known):
    for cell_id, first, body in cells:
        shell.run_cell(f"{first}\n{body}", cell_id=cell_id if known else None).raise_error()


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("edited", ["x = 10\n", "def y():\n    return 20\n", "z = 30\n"])
def test_a_cell_that_runs_again_replaces_what_it_wrote(shell, capsys, known, edited):
    run_cells(shell, *THREE, known=known)
    in_order = capsys.readouterr().out
    assert in_order.splitlines()[:2] == [
        "workers/one.py written: 1 line",
        "workers/one.py added to: 5 lines",
    ]
    place = next(at for at, cell in enumerate(THREE) if cell[2][:2] == edited[:2])
    cell_id, first, _ = THREE[place]
    run_cells(shell, (cell_id, first, edited), (cell_id, first, edited), known=known)
    texts = [body for _, _, body in THREE]
    texts[place] = edited
    assert (paths.workers() / "one.py").read_text() == "\n\n".join(texts)
    capsys.readouterr()
    run_cells(shell, *THREE, known=known)
    assert (paths.workers() / "one.py").read_text() == "\n\n".join(body for _, _, body in THREE)
    assert capsys.readouterr().out == in_order


def test_a_cell_that_defines_something_else_now_is_known_by_its_id(shell):
    run_cells(shell, *THREE, known=True)
    run_cells(shell, ("b", THREE[1][1], "other = 20\n"), known=True)
    assert (paths.workers() / "one.py").read_text() == "x = 1\n\n\nother = 20\n\n\nz = 3\n"


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("ids", ["acb", "abb", "acd", "abd", "add"])
def test_cells_with_new_ids_are_known_by_their_text_and_names(shell, ids, edited):
    # VS Code numbers the cells of a notebook anew when it opens it.
    run_cells(shell, *THREE, known=True)
    texts = ["x = 1\n", "def y():\n    return 20\n" if edited else THREE[1][2], "z = 3\n"]
    anew = [
        (cell_id, first, text)
        for cell_id, (_, first, _), text in zip(ids, THREE, texts, strict=True)
    ]
    for order in (anew, anew[:1] + anew[:0:-1], anew[2:], anew[1:2]):
        run_cells(shell, *order, known=True)
        assert (paths.workers() / "one.py").read_text() == "\n\n".join(texts)


def test_a_new_cell_in_the_middle_of_a_notebook_goes_to_the_middle_of_its_file(
    shell, tmp_path, monkeypatch
):
    old = "class Plan:\n    pass\n\n\ndef plan() -> Plan: ...\n"
    run_cells(shell, THREE[0], ("b", THREE[1][1], old), THREE[2], known=True)
    newer = [THREE[0], ("n", THREE[1][1], "class Plan:\n    pass\n")]
    newer += [("b", THREE[1][1], "def plan() -> Plan: ...\n"), THREE[2]]
    book = nbformat.v4.new_notebook()
    for cell_id, first, body in newer:
        book.cells.append(nbformat.v4.new_code_cell(f"{first}\n{body}", id=cell_id))
    nbformat.write(book, tmp_path / "99_newer.ipynb")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    run_cells(shell, *newer, known=True)
    assert (paths.workers() / "one.py").read_text() == "\n\n".join(c[2] for c in newer)


def test_cells_add_to_a_file_that_was_changed_by_hand_or_write_it_anew(shell):
    run_cells(shell, *THREE, known=True)
    path = paths.workers() / "one.py"
    changed = path.read_text().replace("return 2", "return 3")
    path.write_text(changed)
    for _ in range(2):
        run_cells(shell, THREE[2], known=True)
        assert path.read_text() == f"{changed}\n\nz = 3\n"
    run_cells(shell, *THREE, known=True)
    assert path.read_text() == "\n\n".join(body for _, _, body in THREE)


def test_a_rank_that_reads_a_file_while_its_cell_runs_reads_one_version(shell):
    run_cells(shell, *THREE[:1], known=True)
    with (paths.workers() / "one.py").open() as reader:
        run_cells(shell, ("a", THREE[0][1], "x = 100\n"), known=True)
        assert reader.read() == THREE[0][2]


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_cells_that_set_attributes_of_one_class_are_different_cells(shell, known):
    cells = [("a", "%%worker one.py", "class A:\n    pass\n")]
    cells += [(name, "%%worker --append one.py", f"A.{name} = len\n") for name in "bcd"]
    for _ in range(2):
        run_cells(shell, *cells, known=known)
        assert (paths.workers() / "one.py").read_text() == "\n\n".join(c[2] for c in cells)


def test_ours_gives_way_to_an_answer_that_has_passed(shell, capsys, tmp_path, monkeypatch):
    ours, theirs = "def mask():\n    return 1\n", "def mask():\n    return 'theirs'\n"
    lesson = tmp_path / "lessons/nb99/exercise_99_1.py"
    lesson.parent.mkdir(parents=True)
    lesson.write_text(f"TITLE = 'a mask'\nPROVEN = ()\nOURS = {ours!r}\n")
    monkeypatch.setattr(paths, "LESSONS", tmp_path / "lessons")
    (paths.workers() / "exercise_99_1.py").write_text(theirs)
    shell.run_cell_magic("worker", "part.py --ours 99.1", "# a mask")
    assert (paths.workers() / "part.py").read_text() == ours
    answers.note("99.1", passed=True)
    shell.run_cell_magic("worker", "part.py --ours 99.1", "# a mask")
    assert (paths.workers() / "part.py").read_text() == theirs
    (paths.workers() / "exercise_99_1.py").write_text(theirs + "# changed since\n")
    shell.run_cell_magic("worker", "part.py --ours 99.1", "# a mask")
    assert (paths.workers() / "part.py").read_text() == ours
    assert capsys.readouterr().out.splitlines() == [
        "workers/part.py written: 2 lines (ours)",
        "workers/part.py written: 2 lines (yours: 99.1 has passed)",
        "workers/part.py written: 2 lines (ours)",
    ]


def test_a_guess_is_shown_beside_the_measurement_to_a_reader_alone(capsys, monkeypatch):
    predict("12 MB").compare("25 MB")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("nbtorchrun.display.page.watched", lambda: True)
    predict("").compare("25 MB")
    nothing = capsys.readouterr().out
    assert nothing.startswith("No guess yet.")
    assert "25 MB" not in nothing
    predict("12 MB").compare("25 MB")
    assert capsys.readouterr().out == "You guessed 12 MB. Measured: 25 MB.\n"


@pytest.mark.parametrize(
    ("guess", "measured", "right"),
    [
        ("(C)", "c", True),
        ("c", "c, 30 MB", True),
        ("30 MB", "30 mb", True),
        ("C.", "c: every three hours", True),
        ("b", "c, 30 MB", False),
        ("a", "about 3", False),
        ("c, 30", "c, 30 MB", False),
    ],
)
def test_a_guess_is_right_if_it_is_the_letter_or_all_of_it(guess, measured, right, monkeypatch):
    shown = []
    monkeypatch.setattr("nbtorchrun.display.page.watched", lambda: True)
    monkeypatch.setattr("nbtorchrun.display.page.show", lambda drawn, _: shown.append(drawn))
    predict(guess).compare(measured)
    assert ("✓" in shown[0]) == right


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
        ("--as 9 x.py", "choose a name that is valid in Python"),
        ("--no-such x.py", "usage: %torchrun"),
        ("", "required: file"),
        ("../x.py", "outside workers/"),
        ("x.txt", "must end in .py"),
        (
            "x.py  # rank 1's turn",
            "unmatched quotation mark or backslash in the line x.py",
        ),
        ("x.py \\", "a backslash before it"),
    ],
)
def test_a_bad_line_is_refused_in_one_sentence(shell, line, said):
    with pytest.raises(InputError) as caught:
        shell.run_cell_magic("torchrun", line, "print(1)\n")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_worker_line_that_cannot_be_split_is_refused_in_one_sentence(shell):
    with pytest.raises(InputError, match="unmatched quotation mark or backslash"):
        shell.run_cell_magic("worker", "x.py 'y", "print(1)\n")


@pytest.mark.parametrize(
    "line",
    [
        "--standalone --nproc_per_node=2 args.py --my_flag",
        "--nproc_per_node 2 args.py --my_flag  # two ranks",
        "--nnodes=1 --nproc-per-node=2 args.py --my_flag #",
    ],
)
def test_a_line_may_be_spelled_as_torchrun_allows(shell, line):
    shell.run_cell_magic("torchrun", line, "import sys\nprint(sys.argv[1:])\n")
    assert [rank.stdout for rank in shell.user_ns["run"].ranks] == ["['--my_flag']\n"] * 2


def test_a_cell_writes_over_a_file_in_another_encoding(shell):
    (paths.workers() / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    shell.run_cell_magic("worker", "--append latin.py", "y = 2\n")
    text = (paths.workers() / "latin.py").read_bytes()
    assert text == b"# -*- coding: latin-1 -*-\nx = '\xe9'\n\n\ny = 2\n"
    shell.run_cell_magic("worker", "latin.py", "x = 1\n")
    assert (paths.workers() / "latin.py").read_text() == "x = 1\n"
