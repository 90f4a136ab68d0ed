"""The worker files: written by cells, read back as modules.

The text of each cell is kept by file and by the cell's key; the file is made of these texts. So a
cell that runs again replaces what it wrote before, and the text of other cells stays.
"""

import ast
import os
import sys
import sysconfig
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from course_utils import answers, notes, paths
from course_utils.cells import GAP, parts, text_of
from nbtorchrun import settings
from nbtorchrun.errors import InputError

WRITTEN = ".cells.json"  # what each cell wrote last, by file and by the cell's key, in order
AS_IT_IS = {"encoding": "utf-8", "errors": "surrogateescape"}  # the student's other bytes stay
FIRST = "first"  # the key of the cell that begins a file; those that append have their ids
BY_HAND = "by hand"  # the key of the text of a file that is not, or not only, the cells'


def write(file: str, body: str, append: bool = False, ours: str = "", cell_id: str = "") -> str:
    """Write a cell to `workers/FILE`; return the line that says so.

    Args:
        file: the worker file's name.
        body: the cell without its first line.
        append: the cell continues a file that another cell began.
        ours: the exercise whose answer is written in place of the cell: the student's, if it has
            passed its check, otherwise the course's.
        cell_id: the notebook's id of the cell; '' if it is not known.
    """
    path = worker_path(file)
    text = text_of(body, ours)
    if append:
        write_missing(path.name)  # the part before it, if its cell has not run yet
    with notes.changing(WRITTEN) as noted:
        content = path.read_text(**AS_IT_IS) if path.exists() else ""
        written = noted.get(path.name, {}) if content else {}
        if append and content != GAP.join(written.values()):
            written = {BY_HAND: content}  # the cell adds to what the student has changed
        if not append and FIRST not in written:
            written = {}  # the cell begins the file anew
        key = _key(path.name, written, text, cell_id) if append else FIRST
        written = written | {key: text}
        if len(written) > 1:  # or nothing is out of order, and no notebook need be read
            written = _in_order(path.name, written)
        _write(path, written)
        noted[path.name] = written
    until = list(written).index(key) + 1
    count = len(GAP.join(list(written.values())[:until]).splitlines())
    lines = "1 line" if count == 1 else f"{count} lines"
    done = f"workers/{path.name} {'added to' if append else 'written'}: {lines}"
    if not ours:
        return done
    return f"{done} (yours: {ours} has passed)" if answers.passed_text(ours) else f"{done} (ours)"


def _key(file: str, written: dict[str, str], text: str, cell_id: str) -> str:
    """The key under which a cell that appends has noted what it wrote.

    Text and names come before the id, because some pages number their cells anew when they open
    a notebook. So it is the key of the same text; or the id that the saved notebook has for this
    text; or the key of the text that defines most of the same names; or the cell's id, unless the
    saved notebook has what that id wrote in another cell; or a new key.
    """
    others = {key: before for key, before in written.items() if key not in (FIRST, BY_HAND)}
    same = [key for key, before in others.items() if before == text]
    if same:
        return cell_id if cell_id in same else same[0]
    cells = [cell for cell in parts().get(file, []) if cell.append]
    saved = next((cell.id for cell in cells if cell.text == text), "")
    if saved and (saved in others or cell_id in ("", saved)):
        return saved
    shared = {key: len(_defined(text) & _defined(before)) for key, before in others.items()}
    if most := max(shared.values(), default=0):
        return cell_id if shared.get(cell_id) == most else max(shared, key=shared.get)
    stale = any(cell.text == others.get(cell_id) and cell.id != cell_id for cell in cells)
    return cell_id if cell_id and not stale else f"?{len(written)}"


def _in_order(file: str, written: dict[str, str]) -> dict[str, str]:
    """The texts in the order of the saved notebook; one that it doesn't have follows its neighbour.

    A newer edition of a notebook may have a new cell in the middle of a file that is there already.
    """
    cells = parts().get(file, [])
    places = {cell.id if cell.append else FIRST: at for at, cell in enumerate(cells)}
    place, ranks = -1, {}
    for key in written:
        ranks[key] = place = places.get(key, place)
    return {key: written[key] for key in sorted(written, key=ranks.__getitem__)}


def _defined(text: str) -> set[str]:
    """The names a text binds at its top level, `Tape.shape` too; none if it has a syntax error."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return set()
    names = {getattr(node, "name", "") for node in body}
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            bound = (leaf for leaf in ast.walk(node) if hasattr(leaf, "ctx"))
            names |= {ast.unparse(leaf) for leaf in bound if isinstance(leaf.ctx, ast.Store)}
    return names - {""}


def _write(path: Path, written: dict[str, str]) -> None:
    """Write a file from the texts of its cells."""
    settings.replace(path, GAP.join(written.values()).encode(**AS_IT_IS))


def write_missing(*names: str) -> None:
    """Write these worker files, and those they import, where they are missing in `workers/`.

    Existing files are left alone: the student may have changed them.
    """
    saved, seen, wanted = parts(), set(), list(names)
    noted: dict[str, Any] | None = None
    with ExitStack() as until_the_end:  # one note for all of them: it holds the text of all cells
        while wanted:
            file = wanted.pop()
            seen.add(file)
            path = paths.workers() / file
            if not path.exists() and file in saved:
                if noted is None:
                    noted = until_the_end.enter_context(notes.changing(WRITTEN))
                texts = [cell.text for cell in saved[file]]
                keys = [cell.id if cell.append else FIRST for cell in saved[file]]
                noted[file] = dict(zip(keys, texts, strict=True))
                _write(path, noted[file])
            if path.exists():
                wanted += [other for other in imported(path) if other not in seen]


def script_path(script: str | Path) -> Path:
    """The path of a worker file, written from the notebooks if it is missing in `workers/`.

    Args:
        script: its name, with or without `workers/` before it.

    Raises:
        InputError: it would lie outside `workers/`, is not a Python file, or could not run beside
            another file that is there.
    """
    path = worker_path(script)
    write_missing(path.name)
    for other in paths.workers().glob("*.py"):
        _refuse_taken(other)
    return path


def worker_path(script: str | Path) -> Path:
    """Where the worker file called `script` lies or would lie.

    Raises:
        InputError: outside `workers/`, not a Python file, or with the name of a module that ranks
            need.
    """
    folder = paths.workers()
    path = Path(os.path.normpath(folder / str(script).removeprefix("workers/")))
    if path.parent != folder or path.resolve().parent != folder.resolve():
        raise InputError(f"{script} is outside workers/: give the name of a file in that folder")
    if path.suffix != ".py":
        raise InputError(f"{script} is not a Python file: its name must end in .py")
    _refuse_taken(path)
    return path


def _refuse_taken(path: Path) -> None:
    if path.stem in settings.TAKEN and path.name not in parts():  # a newer Python may take ours
        settings.refuse_taken(path)


def imported(path: Path) -> list[str]:
    """The files a worker file would import if they were beside it; [] if it has a syntax error."""
    return list(_imported(path, path.stat().st_mtime_ns))


@cache
def _imported(path: Path, modified: int) -> tuple[str, ...]:
    """The same of a file as it was when `modified`: to read all that a script needs takes 30 ms."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.append(node.module)
    return tuple(f"{module}.py" for module in modules if "." not in module)


def load_worker(name: str) -> ModuleType:
    """The worker file `name` as a module of this process, executed again as the file is now.

    Other worker files that it imports are imported only once, as usual in Python.

    Raises:
        FileNotFoundError: it is not in `workers/`, and no notebook has a cell that writes it.
        InputError: another module has its name.
    """
    path = script_path(name)
    if not path.exists():
        raise FileNotFoundError(f"workers/{name} does not exist: write it with %%worker {name}")
    there = getattr(sys.modules.get(path.stem), "__file__", None) or ""
    if there.startswith((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        raise InputError(
            f"workers/{path.name} has the name of a package that this notebook has imported, and "
            f"would take its place. Call it something else, such as my_{path.name}"
        )
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # for other worker files that import it
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    return module
