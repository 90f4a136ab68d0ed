"""Executes a notebook and saves it without noise, for people who edit the course."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_utils import paths
from course_utils.notebook.reading import write_time

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
KEPT = ("tags", "jupyter")  # of a cell's metadata; "jupyter" folds answers and instruments
GETS_THE_COURSE = "get-the-course"  # the id of the first code cell
FIRST_CELL = paths.ROOT / "course_utils" / "notebook" / "first_cell.py"
TIMEOUT = 600  # seconds that a cell may take


def execute(path: Path) -> None:
    """Run all cells of `path` in a new kernel, in its own folder, and save it in place.

    The title says how many minutes the core takes (`reading.minutes`), and the first code cell is
    `first_cell.py`. Cell ids stay; metadata that differs between machines, such as times and
    versions, goes.
    """
    book = nbformat.read(path, as_version=4)
    write_first_cell(book)
    client = NotebookClient(
        book,
        timeout=TIMEOUT,
        kernel_name=KERNEL["name"],
        record_timing=False,
        coalesce_streams=True,  # a busy kernel may send a line in pieces
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    try:
        client.execute()
    finally:  # save it even if it failed: its outputs say where
        book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
        for cell in book.cells:
            cell.metadata = {key: cell.metadata[key] for key in KEPT if key in cell.metadata}
        write_time(book)
        nbformat.write(book, path)


def write_first_cell(book: nbformat.NotebookNode) -> None:
    """Put `first_cell.py` below the title, as a folded cell, in place of the one that is there."""
    made = nbformat.v4.new_code_cell(
        FIRST_CELL.read_text(encoding="utf-8").rstrip("\n"),
        id=GETS_THE_COURSE,
        metadata={"jupyter": {"source_hidden": True}},
    )
    others = [cell for cell in book.cells if cell.id != GETS_THE_COURSE]
    book.cells = [*others[:1], made, *others[1:]]
