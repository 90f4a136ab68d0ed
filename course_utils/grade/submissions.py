"""Reads the answers to exercises out of what a student hands in. Nothing of it is executed."""

import ast
import re
import symtable
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_utils import paths
from course_utils.checking import registry
from course_utils.errors import InputError
from course_utils.notebook import cells
from course_utils.notebook.cells import GAP, file_text

# They may leave a name as it was, or begin with what it was.
MAY_NOT_BIND = (ast.AugAssign, ast.If, ast.For, ast.While, ast.Try, ast.Match)


@dataclass(frozen=True)
class Answer:
    """A student's answer to one exercise.

    Attributes:
        file: the file that was handed in.
        exercise: the exercise that it answers.
        text: the answer as a Python file; '' if nothing was handed in.
        function: the function to check; '' where the whole file is.
    """

    file: Path
    exercise: registry.Exercise
    text: str
    function: str


def read(path: Path) -> list[Answer]:
    """The answers in a file, in the order of the exercises.

    Of a notebook: one for each exercise that the course's notebook of that number has.

    Raises:
        InputError: it is broken, or answers no exercise.
    """
    return _of_notebook(path) if path.suffix == ".ipynb" else [_of_worker_file(path)]


def _of_worker_file(path: Path) -> Answer:
    named = re.search(r"exercise_(\d\d)_(\d+)\.py$", path.name)
    if not named:
        raise InputError(f"{path.name} names no exercise: call it exercise_04_2.py, for 04.2")
    exercise = registry.find(".".join(named.groups()))
    return Answer(path, exercise, _text(path), "" if exercise.file else our_function(exercise))


def _of_notebook(path: Path) -> list[Answer]:
    sources = _sources(path)
    written, asked = _files(sources, path.stem), _checks(sources)
    named = (re.search(r"(\d\d)[._]", found) for found in (*written, *asked))
    numbers = {match[1] for match in named if match} & set(registry.notebooks())
    if not numbers:
        raise InputError(f"{path.name} answers no exercise: hand in a notebook of the course")
    found = []
    for exercise in (each for number in sorted(numbers) for each in registry.exercises_of(number)):
        if exercise.file:
            found.append(Answer(path, exercise, written.get(exercise.file, ""), ""))
        else:
            default = (our_function(exercise), len(sources))
            name, before = asked.get(exercise.number, default)
            found.append(Answer(path, exercise, needed(name, sources[:before]), name))
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _sources(path: Path) -> list[str]:
    """The code cells of a notebook."""
    try:
        found = cells.read(path)["cells"]
        return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
    except (LookupError, TypeError):
        raise InputError(f"the notebook {path.name} is broken: save it again, in Jupyter") from None


def _files(sources: list[str], notebook: str) -> dict[str, str]:
    """The text of every worker file that the cells write, by file name."""
    texts: dict[str, str] = {}
    for cell in filter(None, (cells.parsed(source, notebook) for source in sources)):
        text, before = file_text(cell.body), texts.get(cell.file, "")
        texts[cell.file] = f"{before}{GAP}{text}" if cell.append and before else text
    return texts


def _checks(sources: list[str]) -> dict[str, tuple[str, int]]:
    """What each `check("03.3", my_share)` asks about: the function's name, '' if none; its cell."""
    asked = {}
    for place, source in enumerate(sources):
        for statement in _statements(source):
            match statement:
                case ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str(number)), *more])):
                    name = more[0].id if more and isinstance(more[0], ast.Name) else ""
                    asked[number] = name, place
    return asked


@cache
def our_function(exercise: registry.Exercise) -> str:
    """What the function is called that an exercise asks for, in the course's own notebook."""
    (path,) = paths.NOTEBOOKS.glob(f"{exercise.number.partition('.')[0]}_*.ipynb")
    return _checks(_sources(path))[exercise.number][0]


def needed(name: str, sources: list[str]) -> str:
    """The code that defines a name: the last statement that binds it, and what that one needs.

    The rest of a notebook, its runs and its plots, is left out. '' if nothing binds the name.
    """
    wanted, kept = {name}, []
    for source in reversed(sources):
        for statement in reversed(_statements(source)):
            if wanted & (bound := _bound(statement)):
                before = wanted if isinstance(statement, MAY_NOT_BIND) else wanted - bound
                wanted = before | _used(statement)
                kept.append(_segment(source, statement))
    return file_text(GAP.join(reversed(kept))) if kept else ""


def _statements(source: str) -> list[ast.stmt]:
    """The statements of a cell, without IPython's magics; none if Python cannot read it."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(_plain(source)).body
    return []


def _plain(source: str) -> str:
    """A cell with its magics blanked out: a magic of a cell takes all of it."""
    if source.startswith("%%"):
        return ""
    return "\n".join("" if re.match(r"[%!?]", line) else line for line in source.split("\n"))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    match statement:
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _used(statement: ast.stmt) -> set[str]:
    """The global names that it uses; a function that calls itself needs no other of that name."""
    table = symtable.symtable(ast.unparse(statement), "answer", "exec")
    return set(_global_names(table)) - {getattr(statement, "name", "")}


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _global_names(inner)


def _segment(source: str, statement: ast.stmt) -> str:
    """The lines of a statement, its decorators included."""
    first = min(node.lineno for node in [statement, *getattr(statement, "decorator_list", [])])
    return "\n".join(_plain(source).split("\n")[first - 1 : statement.end_lineno])
