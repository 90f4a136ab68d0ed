"""Reads the worker cells out of the notebooks: the only source of every worker file."""

import ast
import json
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from course_utils import paths
from course_utils.errors import InputError


@dataclass(frozen=True)
class Cell:
    """A cell that begins with `%%worker` or `%%torchrun`.

    Attributes:
        notebook: the notebook's file name without its ending.
        magic: `worker` or `torchrun`.
        line: what follows the magic, split as a shell splits words.
        body: the rest of the cell, which becomes the file.
        tags: the cell's tags.
    """

    notebook: str
    magic: str
    line: tuple[str, ...]
    body: str
    tags: tuple[str, ...]

    @property
    def file(self) -> str:
        """The worker file the cell writes; '' if its magic would refuse the name."""
        named = next((word for word in self.line if word.endswith(".py")), "")
        path = Path(os.path.normpath(named.removeprefix("workers/")))
        return path.name if path.suffix == ".py" and path.parent == Path() else ""

    @property
    def append(self) -> bool:
        """Whether it adds to a file that another cell began."""
        return "--append" in self.line


def cells() -> Iterator[Cell]:
    """The worker cells of all notebooks, in order."""
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        yield from _cells_of(path, path.stat().st_mtime_ns)


@cache
def _cells_of(path: Path, modified: int) -> list[Cell]:
    """The worker cells of one notebook, as it was when `modified`.

    Without those that write no file: their magic says what is wrong when they run.
    """
    found = []
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        first, _, body = source.partition("\n")
        magic, _, line = first.partition(" ")
        if cell["cell_type"] == "code" and magic in ("%%worker", "%%torchrun"):
            tags = tuple(cell["metadata"].get("tags", ()))
            try:
                words = tuple(shlex.split(line))
            except ValueError:
                continue
            found.append(Cell(path.stem, magic.removeprefix("%%"), words, body, tags))
    return [cell for cell in found if cell.file]


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
            f"cannot read the notebook {path} ({error.strerror}): see that it is there, and yours "
            "to read"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"the notebook {path} is broken ({error}): take git's conflict marks out of it, if "
            "that is why, or move it out of its folder"
        ) from None
    return book


def sources() -> dict[str, str]:
    """The text of every worker file of every notebook, by file name."""
    texts: dict[str, str] = {}
    for cell in cells():
        text = file_text(cell.body)
        before = texts.get(cell.file)
        texts[cell.file] = appended(before, text) if cell.append and before else text
    return texts


def file_text(body: str) -> str:
    """A cell's body as a file: one newline at its end."""
    return body.strip("\n") + "\n"


def appended(before: str, text: str) -> str:
    """`before` with `text` after it, once: a cell that is run again adds nothing."""
    return before if text in before else f"{before}\n\n{text}"


def write_missing(*names: str) -> None:
    """Write these worker files, and those they import, where they are missing in `workers/`.

    A file that is there is left alone: the student may have changed it.
    """
    texts, seen, wanted = sources(), set(), list(names)
    while wanted:
        file = wanted.pop()
        seen.add(file)
        path = paths.workers() / file
        if not path.exists() and file in texts:
            path.write_text(texts[file], encoding="utf-8")
        if path.exists():
            wanted += [other for other in imported(path) if other not in seen]


def script_path(script: str | Path) -> Path:
    """The path of a worker file; what is missing in `workers/` is written from the notebooks.

    Args:
        script: its name, with or without `workers/` before it.

    Raises:
        InputError: it would lie outside `workers/`, or is not a Python file.
    """
    path = worker_path(script)
    write_missing(path.name)
    return path


def worker_path(script: str | Path) -> Path:
    """Where the worker file called `script` lies or would lie.

    Raises:
        InputError: outside `workers/`, or not a Python file.
    """
    folder = paths.workers()
    name = str(script).removeprefix("workers/")
    path = folder / name
    if Path(os.path.normpath(path)).parent != folder or path.resolve().parent != folder.resolve():
        raise InputError(f"{script} is outside workers/: give the name of a file in that folder")
    if path.suffix != ".py":
        raise InputError(f"{script} is not a Python file: its name must end in .py")
    return Path(os.path.normpath(path))


def imported(path: Path) -> list[str]:
    """The files a worker file would import if they were beside it; [] if it has a syntax error."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except SyntaxError:
        return []
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.append(node.module)
    return [f"{module}.py" for module in modules if "." not in module]


def load_worker(name: str) -> ModuleType:
    """The worker file `name` as a module of this process: run anew, as the file is now.

    What it imports from other worker files is imported once, as Python does.

    Raises:
        FileNotFoundError: it is not in `workers/`, and no notebook has a cell that writes it.
    """
    write_missing(name)
    path = paths.workers() / name
    if not path.exists():
        raise FileNotFoundError(f"workers/{name} is not there: write it with %%worker {name}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # for other worker files that import it
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), module.__dict__)
    return module
