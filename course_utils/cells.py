"""Reads the worker cells of the notebooks, which are the only source of every worker file."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from course_utils import answers, exercises, paths
from nbtorchrun.arguments import split
from nbtorchrun.errors import InputError

MAGICS = ("%%worker", "%%torchrun")
GAP = "\n\n"  # between the texts of two cells in a file, after the newline that ends the first


@dataclass(frozen=True)
class Cell:
    """A cell that begins with `%%worker` or `%%torchrun`.

    Attributes:
        id: the notebook's id of the cell; '' if it has none.
        notebook: the notebook's file name without its ending.
        magic: `worker` or `torchrun`.
        line: what follows the magic, split into words as a shell does.
        body: the rest of the cell, which becomes the file.
    """

    id: str
    notebook: str
    magic: str
    line: tuple[str, ...]
    body: str
    tags: tuple[str, ...]

    @cached_property
    def file(self) -> str:
        """The worker file the cell writes; '' if its magic would refuse the name."""
        named = next((word for word in self.line if word.endswith(".py")), "")
        path = Path(os.path.normpath(named.removeprefix("workers/")))
        return path.name if path.suffix == ".py" and path.parent == Path() else ""

    @property
    def append(self) -> bool:
        """Whether it adds to a file that another cell began."""
        return "--append" in self.line

    @cached_property
    def ours(self) -> str:
        """The number of the exercise whose answer the cell adds; '' if it has a text of its own."""
        marked = zip(self.line, self.line[1:], strict=False)
        return next((number for word, number in marked if word == "--ours"), "")

    @property
    def text(self) -> str:
        """What the cell adds to its file."""
        return text_of(self.body, self.ours)


def cells() -> Iterator[Cell]:
    """The worker cells of all notebooks, in order."""
    return (cell for cell in _all_cells() if cell.file)


def _all_cells() -> Iterator[Cell]:
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        yield from _cells_of(path, path.stat().st_mtime_ns)


@cache
def _cells_of(path: Path, modified: int) -> list[Cell]:
    """The cells with a magic of the course in one notebook, as it was when `modified`.

    Cells with a broken first line are left out: their magic says what is wrong when they run.
    """
    found = []
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "code":
            tags = tuple(cell["metadata"].get("tags", ()))
            found.append(parsed("".join(cell["source"]), path.stem, cell.get("id", ""), tags))
    return [cell for cell in found if cell]


def parsed(source: str, notebook: str, id: str = "", tags: tuple[str, ...] = ()) -> Cell | None:
    """A code cell with a magic of the course; None for another, and if its first line is broken."""
    first, _, body = source.partition("\n")
    magic, _, line = first.partition(" ")
    if magic in MAGICS:
        with suppress(InputError):
            words = tuple(split(line))
            return Cell(id, notebook, magic.removeprefix("%%"), words, body, tags)
    return None


def read(path: Path) -> dict[str, Any]:
    """A notebook, as its file has it.

    Raises:
        InputError: it is not there, or its file is broken.
    """
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        book["cells"]
    except OSError as error:
        raise InputError(
            f"cannot read the notebook {path} ({error.strerror}): check that it exists and that "
            "you may read it"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"the notebook {path} is broken ({error}): remove any conflict marks that git left, or "
            "move it out of its folder"
        ) from None
    return book


def parts() -> dict[str, list[Cell]]:
    """The cells of all notebooks that write each worker file, in order, by file name."""
    found: dict[str, list[Cell]] = {}
    for cell in cells():
        if cell.append:
            found.setdefault(cell.file, []).append(cell)
        else:
            found[cell.file] = [cell]
    return found


def sources() -> dict[str, str]:
    """The text of every worker file of every notebook, by file name."""
    return {file: GAP.join(cell.text for cell in written) for file, written in parts().items()}


def text_of(body: str, ours: str) -> str:
    """What a cell adds to its file.

    A cell that stands for an exercise, `--ours 04.2`, adds the student's answer if that has passed
    its check, and until then the course's own.
    """
    if not ours:
        return file_text(body)
    return file_text(answers.passed_text(ours) or exercises.find(ours).ours)


def file_text(body: str) -> str:
    """A cell's body as a file: one newline at its end."""
    return body.strip("\n") + "\n"
