"""The first cell of each notebook: it gets the course where there is none, and is silent elsewhere.

Colab and Kaggle cannot be had here. Their Python is stood in for by one with a torch and a pip of
its own, both dummies, and without the course.
"""

import json
import shutil

import nbformat
import pytest

from course_utils import paths
from tests.guest import SOURCE, TELL, Guest
from tools.execute import GETS_THE_COURSE, write_first_cell
from tools.guest import NEEDED

# Notes its call and "installs" what it is asked for.
PIP = """
import pathlib, sys
here = pathlib.Path(__file__).parent
(here.parent / "pip-was-called").write_text(" ".join(sys.argv[1:]))
if (here / "offline.py").exists():
    # As pip in a kernel, which sets FORCE_COLOR.
    sys.exit("Collecting rich\\n\\x1b[31mERROR: no connection\\x1b[0m\\n\\x1b[0m")
(here / "rich.py").touch()
"""


@pytest.mark.parametrize(
    "path", sorted(paths.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_every_notebook_has_the_cell_below_its_title_folded_and_silent(path):
    cell = json.loads(path.read_text())["cells"][1]
    assert cell["id"] == GETS_THE_COURSE, "./run.sh execute puts it there"
    assert "".join(cell["source"]) == SOURCE.rstrip("\n"), "./run.sh execute writes it"
    assert cell["metadata"] == {"jupyter": {"source_hidden": True}}
    assert cell["outputs"] == []


def test_the_cell_is_put_in_once_and_kept_up_to_date():
    title, code = nbformat.v4.new_markdown_cell("# 03"), nbformat.v4.new_code_cell("x = 1")
    book = nbformat.v4.new_notebook(cells=[title, code])
    write_first_cell(book)
    once = [dict(cell) for cell in book.cells]
    assert [cell["source"] for cell in once] == ["# 03", SOURCE.rstrip("\n"), "x = 1"]
    book.cells[1].source = "an older one"
    write_first_cell(book)
    assert book.cells == once


@pytest.fixture
def guest(tmp_path):
    """A Python that has everything but the course, which can be cloned."""
    made = Guest(tmp_path)
    made.have(*NEEDED)
    made.have_torch("2.11.0+cu128")
    (made.packages / "pip.py").write_text(PIP)
    made.publish("course_utils", "nbtorchrun", "tools")
    return made


def call_of_pip(guest):
    """What pip was asked for last; None if it was not called."""
    note = guest.packages.parent / "pip-was-called"
    return note.read_text() if note.exists() else None


def test_a_notebook_alone_gets_the_course_beside_it(guest):
    done = guest.run()
    assert done.stdout == f"course: {guest.folder}/course/course_utils/__init__.py\n"
    assert (done.stderr, call_of_pip(guest)) == ("", None)


def test_the_next_kernel_takes_the_course_that_is_there(guest):
    guest.run()
    shutil.rmtree(guest.repository)
    assert guest.run().stdout.startswith("course: ")


@pytest.mark.parametrize("folder", ["notebooks", "my"])
def test_in_a_checkout_nothing_is_cloned(guest, folder):
    (guest.repository / folder).mkdir()
    done = guest.run(guest.repository / folder, repository="nowhere")
    assert done.stdout == f"course: {guest.repository}/course_utils/__init__.py\n"
    assert not list((guest.repository / folder).iterdir())


def test_where_the_course_is_installed_the_cell_does_nothing(guest):
    for name in ("course_utils", "nbtorchrun"):
        shutil.move(guest.repository / name, guest.packages)
    guest.lack("rich")  # their Python is their own
    done = guest.run(repository="nowhere")
    assert done.stdout == f"course: {guest.packages}/course_utils/__init__.py\n"
    assert (done.stderr, call_of_pip(guest)) == ("", None)


def test_only_what_is_missing_is_installed_and_torch_stays(guest):
    guest.lack("rich")
    done = guest.run(more=TELL + "\nimport rich")
    assert done.stdout.startswith("Installed rich.\ncourse: ")
    assert done.stderr == ""
    assert call_of_pip(guest) == "install --quiet rich torch==2.11.0+cu128"


@pytest.mark.parametrize(
    ("torch", "said"),
    [("2.10.1", True), ("2.11.0", False), ("2.15.3+cpu", False), ("2.16.0", True)],
)
def test_a_torch_that_the_course_is_not_tested_with_is_named(guest, torch, said):
    guest.have_torch(torch)
    out = guest.run().stdout
    sentence = f"This Python has torch {torch}, and the course is tested with 2.11 to 2.15"
    assert out.startswith(sentence) == said
    assert "course: " in out


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (lambda guest: guest.lack("torch"), "has no torch: install torch and torchvision there"),
        (lambda guest: shutil.rmtree(guest.repository), "git cannot get the course"),
        (
            lambda guest: (guest.lack("rich"), guest.have("offline")),
            "pip cannot install rich, torch==2.11.0+cu128: ERROR: no connection",
        ),
    ],
    ids=["no torch", "no repository", "no connection"],
)
def test_what_goes_wrong_is_said_in_the_last_line(guest, breaks, says):
    breaks(guest)
    done = guest.run()
    assert done.returncode == 1
    assert says in done.stderr.strip().splitlines()[-1]


def test_a_second_try_installs_what_the_first_could_not(guest):
    guest.lack("rich")
    guest.have("offline")
    offline = guest.packages / "offline.py"
    done = guest.run_code(f"""
import pathlib
for kernel in [{{}}] * 2:
    try:
        exec({guest.first_cell()!r}, kernel)
    except Exception as error:
        print(error)
    pathlib.Path({str(offline)!r}).unlink(missing_ok=True)
""")
    first, second = done.stdout.splitlines()
    assert first.startswith("pip cannot install rich")
    assert second == "Installed rich."


def test_without_the_address_the_cell_says_where_to_write_it(guest):
    done = guest.run(repository="")
    assert "write the address of its git repository into REPOSITORY" in done.stderr
