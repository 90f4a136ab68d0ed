"""A student's own copies of the notebooks: made, never overwritten, and told what is new."""

import json

import nbformat
import pytest

from course_utils import paths
from tools import copies
from tools.__main__ import main

NAME = "03_ddp.ipynb"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two notebooks; the function saves one of them with a cell and its output."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr(paths, "NOTEBOOKS", folder)
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))

    def save(source, output="42\n", name=NAME):
        cell = nbformat.v4.new_code_cell(
            source,
            id="answer",
            metadata={"tags": ["demo:x"]},
            execution_count=1,
            outputs=[nbformat.v4.new_output("stream", text=output)],
        )
        title = nbformat.v4.new_markdown_cell("# 03 · DDP", id="title")
        nbformat.write(nbformat.v4.new_notebook(cells=[title, cell]), folder / name)

    save("print(42)")
    save("print(42)", name="00_first.ipynb")
    return save


@pytest.fixture
def my(course):
    """The folder of the copies, made as at a student's first call."""
    copies.update(paths.my())
    return paths.my()


def source(path):
    return nbformat.read(path, 4).cells[1].source


def change(path, text="print('mine')"):
    """A student changes a notebook, runs it, and saves it."""
    book = nbformat.read(path, 4)
    book.cells[1].source = text
    book.cells[1].outputs = [nbformat.v4.new_output("stream", text="mine\n")]
    nbformat.write(book, path)
    return path.read_bytes()


def beside(my):
    """The new notebooks that were put beside copies."""
    return sorted(my.glob("*.new-*.ipynb"))


def test_a_copy_is_the_course_s_notebook_without_what_its_cells_showed(my):
    assert sorted(path.name for path in my.glob("*.ipynb")) == ["00_first.ipynb", NAME]
    theirs, ours = nbformat.read(my / NAME, 4), nbformat.read(paths.NOTEBOOKS / NAME, 4)
    assert ours.cells[1].outputs
    ours.cells[1].update(outputs=[], execution_count=None)
    assert theirs == ours


def test_the_first_call_says_where_the_copies_are_and_the_next_says_nothing(course):
    (welcome,) = copies.update(paths.my())
    assert str(paths.my()) in welcome
    assert copies.update(paths.my()) == []


def test_a_copy_that_the_student_changed_stays_and_nothing_is_said_while_the_course_is_the_same(
    my, course
):
    mine = change(my / NAME)
    course("print(42)", output="43\n")  # executed again: no change
    assert copies.update(my) == []
    assert (my / NAME).read_bytes() == mine


def test_a_changed_notebook_is_put_beside_a_changed_copy_and_this_is_said_until_it_is_removed(
    my, course
):
    mine = change(my / NAME)
    course("print(43)")
    (said,) = copies.update(my)
    (new,) = beside(my)
    assert said.startswith(f"The course has changed {NAME}. Your copy stays as it is")
    assert new.name in said
    assert (source(new), nbformat.read(new, 4).cells[1].outputs) == ("print(43)", [])
    assert copies.update(my) == [said]
    assert beside(my) == [new]
    new.unlink()
    assert copies.update(my) == []
    assert (my / NAME).read_bytes() == mine


def test_a_student_who_moves_the_new_notebook_over_their_own_hears_no_more_of_it(my, course):
    change(my / NAME)
    course("print(43)")
    copies.update(my)
    beside(my)[0].replace(my / NAME)
    assert copies.update(my) == []
    course("print(44)")
    copies.update(my)
    assert [source(my / NAME), *map(source, beside(my))] == ["print(44)"]


def test_a_student_who_copies_the_new_notebook_over_their_own_hears_no_more_of_it(my, course):
    change(my / NAME)
    course("print(43)")
    copies.update(my)
    (my / NAME).write_bytes(beside(my)[0].read_bytes())
    assert copies.update(my) == []
    change(my / NAME)
    assert copies.update(my) == []


def test_of_new_notebooks_only_the_newest_stays_unless_the_student_has_changed_one(my, course):
    change(my / NAME)
    for version in (43, 44):
        course(f"print({version})")
        copies.update(my)
    (new,) = beside(my)
    assert source(new) == "print(44)"
    change(new)
    course("print(45)")
    copies.update(my)
    assert sorted(map(source, beside(my))) == ["print('mine')", "print(45)"]


def test_a_copy_that_nobody_changed_becomes_the_new_notebook(my, course):
    for version in (43, 44):
        course(f"print({version})")
        (said,) = copies.update(my)
        assert said.startswith(f"The course has changed {NAME}, and you had not")
        assert (source(my / NAME), beside(my)) == (f"print({version})", [])
    assert copies.update(my) == []


def test_a_copy_that_was_changed_back_is_replaced_too_and_what_was_offered_is_left_alone(
    my, course
):
    old = (my / NAME).read_bytes()
    change(my / NAME)
    course("print(43)")
    copies.update(my)
    (my / NAME).write_bytes(old)
    course("print(44)")
    copies.update(my)
    assert source(my / NAME) == "print(44)"
    assert beside(my) == []  # nobody had changed what was offered


def test_a_copy_whose_version_is_not_known_is_not_replaced(my, course):
    """As an earlier edition left it: the notes say what was offered, not what was copied."""
    mine = (my / NAME).read_bytes()
    course("print(43)")
    noted = json.loads((my / copies.NOTED).read_text())
    noted[NAME] = {"version": "another", "offered": "03_ddp.new-2026-11-26.ipynb"}
    (my / copies.NOTED).write_text(json.dumps(noted))
    copies.update(my)
    assert (my / NAME).read_bytes() == mine
    assert len(beside(my)) == 1


def test_the_course_s_documents_are_beside_the_copies_and_links_lead_there(my, course):
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("[all](../docs/symbols.md), [02](02.ipynb) `](../x`")]
    )
    nbformat.write(book, paths.NOTEBOOKS / NAME)
    copies.update(my)
    text = nbformat.read(my / NAME, 4).cells[0].source
    assert text == "[all](docs/symbols.md), [02](02.ipynb) `](../x`"
    assert (my / "docs/symbols.md").samefile(paths.ROOT / "docs/symbols.md")


def test_a_folder_of_the_student_s_stays_where_the_documents_would_go(course):
    own = paths.my() / "docs/mine.txt"
    own.parent.mkdir(parents=True)
    own.touch()
    copies.update(paths.my())
    copies.update(paths.my())
    assert own.exists()


def test_a_copy_that_the_student_removed_is_made_again(my, course):
    change(my / NAME)
    (my / NAME).unlink()
    course("print(43)")
    assert copies.update(my) == []
    assert source(my / NAME) == "print(43)"


@pytest.mark.parametrize("notes", ["", "{", None], ids=["empty", "broken", "missing"])
def test_without_its_notes_a_changed_copy_still_stays(my, notes):
    mine = change(my / NAME)
    (my / copies.NOTED).unlink()
    if notes is not None:
        (my / copies.NOTED).write_text(notes)
    copies.update(my)
    assert (my / NAME).read_bytes() == mine


def test_the_command_names_the_folder_to_run_sh_and_the_news_to_the_student(course, capsys):
    assert main(["lab"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{paths.my()}\n"
    assert " ".join(err.split()).startswith(f"Your own copies of the notebooks are in {paths.my()}")


def test_a_broken_notebook_is_one_sentence_and_no_copy_is_lost(my, course, capsys):
    mine = change(my / NAME)
    (paths.NOTEBOOKS / NAME).write_text("<<<<<<< HEAD")
    assert main(["lab"]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "03_ddp.ipynb is broken" in err
    assert (my / NAME).read_bytes() == mine
