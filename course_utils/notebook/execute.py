"""Executes a notebook and saves it without noise, for people who edit the course."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_utils.notebook.reading import write_time

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
KEPT = ("tags", "jupyter")  # of a cell's metadata; "jupyter" folds answers and instruments
TIMEOUT = 600  # seconds that a cell may take


def execute(path: Path) -> None:
    """Run all cells of `path` in a new kernel, in its own folder, and save it in place.

    The first cell says how many minutes the core takes (`reading.minutes`). Cell ids stay;
    metadata that differs between machines, such as times and versions, goes.
    """
    book = nbformat.read(path, as_version=4)
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
