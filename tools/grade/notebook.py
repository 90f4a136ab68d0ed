"""Reads a student's notebook as IPython would. Nothing of it is executed."""

import ast
import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from course_utils import cells
from course_utils.cells import GAP, file_text
from nbtorchrun.errors import InputError
from tools.grade import texts

# Magics of a cell that execute the rest of it as a cell.
RUN_THE_REST = ("time", "timeit", "capture", "prun")
CONFLICT = re.compile(r"^(<<<<<<<|=======|>>>>>>>)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook.

    Attributes:
        place: the first cell of the notebook is 1.
        kind: `code`, `markdown` or `raw`.
        source: what IPython would execute: without a magic such as `%%time` that runs the rest.
    """

    place: int
    kind: str
    source: str


@dataclass(frozen=True)
class Written:
    """What the cells of a notebook write to a worker file.

    Attributes:
        text: the file's.
        begun: the cells that begin the file anew, in order: the last one counts.
    """

    text: str
    begun: tuple[int, ...]


def read(data: bytes, name: str) -> list[Cell]:
    """The cells of a notebook.

    Raises:
        InputError: it is broken, or in a form or an encoding that Jupyter does not write.
    """
    text = texts.decoded(data, name)
    if not text.strip():
        raise InputError(f"the notebook {name} is broken (it is empty): save it again, in Jupyter")
    try:
        book = json.loads(text)
        if "worksheets" not in book:
            return [_cell(place, cell) for place, cell in enumerate(book["cells"], 1)]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        cure = "save it again, in Jupyter"
        if CONFLICT.search(text):
            cure = "remove the conflict marks that git left, or save it again in Jupyter"
        raise InputError(f"the notebook {name} is broken: {cure}") from None
    form = f"format {book.get('nbformat', 3)}, which Jupyter wrote before 2015"
    raise InputError(f"the notebook {name} is in {form}: open it in Jupyter, and save it")


def _cell(place: int, cell: dict[str, Any]) -> Cell:
    kind, source = cell["cell_type"], "".join(cell["source"])
    if kind == "code":
        with contextlib.suppress(Exception):  # what IPython could not read costs this cell alone
            source = _executed(source)
    return Cell(place, str(kind), source)


def _executed(source: str) -> str:
    """A cell as IPython takes it: a magic in its first line, where there is one.

    Only IPython's first steps are taken, which look at lines: they remove blank lines above,
    indentation and prompts, and find the magic of the cell. The others parse all of the code.
    """
    if "%%" not in source:
        return source
    steps = TransformerManager()
    lines = source.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for step in (*steps.cleanup_transforms, *steps.line_transforms):
        lines = step(lines)
    match _call("".join(lines)):
        case ["run_cell_magic", name, _, rest] if name in RUN_THE_REST:
            return _executed(rest)
        case ["run_cell_magic", name, line, rest]:
            return f"%%{name} {line}".rstrip() + f"\n{rest}"
    return source


def _call(code: str) -> list[str]:
    """The method and the arguments of `get_ipython().run_cell_magic('time', '', 'x = 1')`."""
    if not code.startswith("get_ipython().run_cell_magic("):
        return []
    call = ast.parse(code).body[0].value
    return [call.func.attr, *(ast.literal_eval(each) for each in call.args)]


def files(code: Iterable[Cell], notebook: str) -> dict[str, Written]:
    """What the cells write to each worker file, by its name, when they run in their order."""
    found: dict[str, Written] = {}
    for each in code:
        cell = cells.parsed(each.source, notebook) if each.kind == "code" else None
        if not cell or not cell.file:
            continue
        text, before = file_text(cell.body), found.get(cell.file)
        if not cell.append:
            begun = (*before.begun, each.place) if before else (each.place,)
            found[cell.file] = Written(text, begun)
            continue
        # As in a notebook, where a part that is missing is written before it is added to.
        so_far = before.text if before else given().get(cell.file, "")
        joined = f"{so_far}{GAP}{text}" if so_far else text
        found[cell.file] = Written(joined, before.begun if before else ())
    return found


@cache
def given() -> dict[str, str]:
    """The worker files as the course's own notebooks have them, by name."""
    return cells.sources()


def misplaced(all_cells: Iterable[Cell], file: str) -> str:
    """Why no cell writes a file, although a student may think so; '' if no cell names it."""
    wanted = re.compile(rf"^\s*%%(?:worker|torchrun)\b.*\b{re.escape(file)}", re.MULTILINE)
    for cell in all_cells:
        if wanted.search(cell.source):
            if cell.kind == "code":
                above = cell.source.strip().partition("\n")[0][:60]
                return (
                    f"cell {cell.place} has its %%worker line below {above!r}: "
                    "move it to the first line of its cell"
                )
            return (
                f"cell {cell.place} holds it, but is a {cell.kind} cell: turn it into a code cell"
            )
    return ""


def asked(code: Iterable[Cell]) -> Iterator[str]:
    """The numbers of the exercises for which a cell calls `check("03.3")`."""
    for cell in code:
        if cell.kind == "code":
            yield from re.findall(r"\bcheck\(\s*[\"'](\d\d\.\d+)[\"']", cell.source)
