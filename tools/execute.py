"""Executes a notebook and saves it without noise, for people who edit the course."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_utils import paths
from nbtorchrun.errors import InputError
from tools.kernels import without_the_users_settings

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
KEPT = ("tags", "jupyter")  # of a cell's metadata; "jupyter" folds answers and instruments
GETS_THE_COURSE = "get-the-course"  # the id of the first code cell
FIRST_CELL = paths.ROOT / "tools" / "first_cell.py"
TIMEOUT = 600  # seconds that a cell may take


def execute(path: Path) -> None:
    """Run all cells of `path` in a new kernel, in its own folder, and save it in place.

    The kernel knows nothing of the user's own settings, which might change what is saved. In a
    notebook of the course, whose name begins with its number, the first code cell is
    `first_cell.py`. Cell ids stay; metadata that differs between machines, such as times and
    versions, goes. If a cell fails, its outputs are saved all the same: they say where.

    Raises:
        InputError: the kernel died; the file stays as it was.
    """
    book = nbformat.read(path, as_version=4)
    if path.stem[:2].isdigit():
        write_first_cell(book)
    begun: list[str] = []  # the sources of the cells
    client = NotebookClient(
        book,
        on_cell_start=lambda cell, cell_index: begun.append(cell.source),
        timeout=TIMEOUT,
        kernel_name=KERNEL["name"],
        record_timing=False,
        coalesce_streams=True,  # a busy kernel may send a line in pieces
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    try:
        with without_the_users_settings():
            client.execute()
    except RuntimeError as error:  # of the kernel: what a cell raises is a CellExecutionError
        last = begun[-1].strip().partition("\n")[0] if begun else ""
        where = f"in the cell that begins with `{last}`" if begun else "before its first cell"
        raise InputError(
            f"{path} stays as it was: {error} {where}. Does the cell end the process, or use too "
            "much memory?"
        ) from None
    except Exception:
        _save(book, path)
        raise
    _save(book, path)


def _save(book: nbformat.NotebookNode, path: Path) -> None:
    """Write an executed notebook, without the metadata that differs between machines."""
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in book.cells:
        cell.metadata = {key: cell.metadata[key] for key in KEPT if key in cell.metadata}
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
