"""The worker cells of the notebooks, and the files they become."""

import ast
import json
import re
import runpy
from operator import attrgetter

import pytest

from course_utils import cells, files, paths
from nbtorchrun.errors import InputError


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Make a folder of notebooks and an empty home."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr(paths, "NOTEBOOKS", folder)
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))

    def write(name, *sources):
        cells = [
            {"cell_type": "code", "metadata": {"tags": ["a:b"]}, "source": source}
            for source in sources
        ]
        (folder / name).write_text(json.dumps({"cells": cells}))

    return write


def test_cells_become_files(book):
    book("00_a.ipynb", "%%worker one.py\nx = 1\n", "print(2)", "%%torchrun -n 3 two.py --n 4\ny")
    assert cells.sources() == {"one.py": "x = 1\n", "two.py": "y\n"}
    assert [cell.tags for cell in cells.cells()] == [("a:b",)] * 2
    assert [cell.notebook for cell in cells.cells()] == ["00_a"] * 2


def test_appended_cells_follow_in_order(book):
    book("00_a.ipynb", "%%worker a.py\nx", "%%worker --append a.py\ny", "%%worker --append a.py\nz")
    assert cells.sources() == {"a.py": "x\n\n\ny\n\n\nz\n"}


def test_what_is_missing_is_written_with_what_it_imports(book):
    book("00_a.ipynb", "%%worker ring.py\nimport deep", "%%worker deep.py\nimport os")
    book("01_b.ipynb", "%%worker train.py\nfrom ring import x", "%%worker other.py\npass")
    files.write_missing("train.py")
    written = sorted(path.name for path in paths.workers().glob("*.py"))
    assert written == ["deep.py", "ring.py", "train.py"]


def test_a_file_the_student_changed_is_left_alone(book):
    book("00_a.ipynb", "%%worker ring.py\nours", "%%worker train.py\nimport ring")
    (paths.workers() / "ring.py").write_text("theirs")
    files.write_missing("train.py")
    assert (paths.workers() / "ring.py").read_text() == "theirs"


def test_a_notebook_that_changes_is_read_again(book):
    book("00_a.ipynb", "%%worker one.py\nx = 1\n")
    assert "one.py" in cells.sources()
    book("00_a.ipynb", "%%worker another.py\nx = 1\n")
    assert list(cells.sources()) == ["another.py"]


def test_a_file_bears_the_same_name_with_its_folder_before_it(book):
    book("00_a.ipynb", "%%worker workers/mine.py\nx", "%%torchrun ./two.py --to a.py\ny")
    assert list(cells.sources()) == ["mine.py", "two.py"]


@pytest.mark.parametrize("line", ["one.py  # rank 1's turn", "../x.py", "a/x.py", "notes.txt", ""])
def test_a_cell_whose_magic_refuses_it_stands_in_no_other_s_way(book, line):
    book("00_a.ipynb", f"%%worker {line}\nx", "%%worker good.py\ny")
    assert cells.sources() == {"good.py": "y\n"}


@pytest.mark.parametrize(
    "text", ["<<<<<<< HEAD\n{}", "", "{}", "[]"], ids=["conflict", "empty", "no cells", "a list"]
)
def test_a_broken_notebook_is_named_in_one_sentence(book, text):
    (paths.NOTEBOOKS / "04_ring.ipynb").write_text(text)
    with pytest.raises(InputError, match=r"04_ring\.ipynb is broken") as caught:
        files.write_missing("one.py")
    assert "\n" not in str(caught.value)


def test_worker_names_are_unique_over_the_course():
    first = [cell.file for cell in cells.cells() if not cell.append]
    repeated = {name for name in first if first.count(name) > 1}
    assert not repeated


def test_every_worker_file_is_python_with_a_use():
    for name, source in cells.sources().items():
        tree = ast.parse(source, name)
        assert tree.body, name


def test_saved_notebooks_are_clean():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        book = json.loads(path.read_text())
        assert set(book["metadata"]) == {"kernelspec", "language_info"}
        assert book["metadata"]["language_info"] == {"name": "python"}
        for cell in book["cells"]:
            assert set(cell["metadata"]) <= {"tags", "jupyter"}, cell["id"]
            assert cell["metadata"].get("jupyter") in (None, {"source_hidden": True}), cell["id"]
            stub = "raise NotImplementedError" in "".join(cell["source"])
            assert not (stub and is_folded(cell)), f"{cell['id']} hides a stub"
            most = 100 if is_folded(cell) else 60
            assert len(cell["source"]) <= most or cell["cell_type"] == "markdown", cell["id"]


@pytest.mark.parametrize(
    "path", sorted(paths.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_imports_nothing_that_is_not_installed(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code" and cell["id"] != "get-the-course":
            named = re.findall(r"^ *(?:from|import) (\w+)", "".join(cell["source"]), re.MULTILINE)
            assert not {"tools", "lessons", "tests", "website"} & set(named), cell["id"]


def test_no_page_shows_our_answer():
    for cell in filter(attrgetter("ours"), cells.cells()):
        said = cell.body.splitlines()
        assert len(said) == 1, f"{cell.notebook}: the cell for {cell.ours} has a text of its own"
        assert said[0].startswith("# "), said
        assert f"%solution {cell.ours}" in said[0], said


def test_every_saved_picture_is_sharp_and_described():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", ()):
                if "image/png" in output.get("data", ()):
                    said = output["metadata"].get("image/png", {})
                    assert said.get("width", 0) > 300, cell["id"]
                    assert " " in said.get("alt", "").strip(), f"{cell['id']}: no title, no labels"


def test_most_outputs_are_compared():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        shown = [cell for cell in json.loads(path.read_text())["cells"] if cell.get("outputs")]
        free = [c for c in shown if "nbval-ignore-output" in c["metadata"].get("tags", [])]
        assert len(free) <= 0.2 * len(shown), path.name


MOST_VISIBLE_LINES, FEWEST_PICTURES = 40, 3  # lines a cell, pictures
LONGEST = 130  # minutes
# What two readers report of a core from which something still has to go: their mean.
LONGER = {
    **dict.fromkeys(("09", "12"), 140),
    **dict.fromkeys(("00", "01", "03", "06", "07", "08", "10", "11", "14"), 135),
}
NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))


def core_of(path):
    """The cells before *Going further*, each with its source as one text."""
    core = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and "\n## Going further" in "\n" + source:
            break
        core.append({**cell, "source": source})
    return core


def is_folded(cell):
    """Whether JupyterLab shows only a bar in place of the cell's source."""
    return bool(cell["metadata"].get("jupyter", {}).get("source_hidden"))


def code_lines(code):
    """How many lines of code cells hold, without the empty ones."""
    return sum(bool(line.strip()) for cell in code for line in cell["source"].splitlines())


def visible(core):
    """The code cells whose source a reader sees."""
    return [c for c in core if c["cell_type"] == "code" and not is_folded(c)]


def only_writes(cell):
    """Whether a cell writes a file and shows nothing else; a stub is for the student to fill."""
    source = cell["source"]
    asks = "raise NotImplementedError" in source or " --ours " in source.partition("\n")[0]
    return source.startswith("%%worker") and not asks


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_the_text_teaches_is_open(path):
    core = core_of(path)
    seen = visible(core)
    for three in zip(seen, seen[1:], seen[2:], strict=False):
        assert not all(map(only_writes, three)), three[0]["id"]
    for cell in seen:
        assert len(cell["source"].splitlines()) <= MOST_VISIBLE_LINES, cell["id"]
    assert code_lines(filter(is_folded, core)) < code_lines(seen)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_how_long_readers_took(path):
    first = core_of(path)[0]["source"]
    ((least, most),) = re.findall(r"\*\*Time\*\* (\d+) to (\d+) minutes", first)
    assert int(least) < int(most) <= LONGER.get(path.name[:2], LONGEST)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_have_names_of_their_own_and_numbers_from_top_to_bottom(path):
    cells = json.loads(path.read_text())["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    # nbval refuses a cell that has outputs and no number.
    numbers = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_core_shows_its_ideas_and_has_a_break(path):
    core = core_of(path)
    shown = [output.get("data", {}) for cell in core for output in cell.get("outputs", [])]
    assert sum("image/png" in data or "image/svg+xml" in data for data in shown) >= FEWEST_PICTURES
    breaks = [at for at, cell in enumerate(core) if "good place for a break" in cell["source"]]
    assert len(breaks) == 1, "the middle is marked once, where something works"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_guess_is_alone_in_its_cell_and_exercises_are_in_order(path):
    code = [c["source"] for c in core_of(path) if c["cell_type"] == "code"]
    for text in code:
        if 'predict("")' in text:
            lines = [line for line in text.splitlines() if line.strip()]
            assert len(lines) == 1, f"the guess shares its cell: {text}"
    numbers = re.findall(r"^check\(\"(\d\d\.\d+)\"", "\n".join(code), re.MULTILINE)
    assert numbers == sorted(set(numbers))
    assert {number[:2] for number in numbers} <= {path.stem[:2]}


def written(sources):
    """The worker files that cells write."""
    found = (re.match(r"%%(?:worker|torchrun).*?(\w+)\.py", source) for source in sources)
    return {match[1] for match in found if match}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_core_needs_nothing_from_going_further(path):
    core = [cell["source"] for cell in core_of(path)]
    every = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    later = written(every) - written(core)
    for source in core:
        used = re.findall(r"^\s*(?:from|import) (\w+)|(\w+)\.py\b", source, re.MULTILINE)
        assert not later & {name for pair in used for name in pair}, source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_before_it_answers(path):
    core = core_of(path)
    text = "\n".join(cell["source"] for cell in core)
    assert "../docs/symbols.md" in text
    asked = text.count("**Predict.**")
    assert asked >= 5, asked
    assert text.count('predict("")') == text.count(".compare(") == asked


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_page_gives_the_answer_to_a_prediction_away(path):
    asked, measuring = [], {}
    for cell in core_of(path):
        if cell["cell_type"] == "markdown":
            lines = cell["source"].splitlines()
            asked += [line for line in lines if line.startswith(">") and "(b)" in line]
        elif ".compare(" in cell["source"]:
            measuring[cell["id"]] = cell["source"]
    for line in asked:  # one answer a line
        assert re.fullmatch(r"> - \(b\) (?!.*\([acd]\) ).+", line), line
    for source in measuring.values():
        assert not re.search(r"\.compare\(.*[\"'][a-e][\"':,]", source), source
    answered = set(
        runpy.run_path(str(paths.ROOT / f"lessons/nb{path.stem[:2]}/guesses.py"))["ANSWERS"]
    )
    assert answered == set(measuring)
    sources = [source for source in measuring.values()]
    assert len(set(sources)) == len(sources)  # a page without our ids knows a cell by its text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_exercise_stands_before_the_cell_that_uses_it(path):
    sources = [cell["source"] for cell in core_of(path) if cell["cell_type"] == "code"]
    for at, source in enumerate(sources):
        if found := re.match(r"%%worker.* --ours (\d\d\.\d)", source):
            checked = [before for before in sources[:at] if f'check("{found[1]}"' in before]
            assert checked or found[1][:2] < path.stem[:2], f"{found[1]} is used before its check"


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_cells_that_run_in_order_write_the_files_that_the_notebooks_hold(
    tmp_path, monkeypatch, known
):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    for _ in range(2):  # again: each replaces what it wrote
        for cell in cells.cells():
            cell_id = cell.id if known else ""
            files.write(cell.file, cell.body, cell.append, cell.ours, cell_id)
    for name, source in cells.sources().items():
        assert (paths.workers() / name).read_text() == source, name
