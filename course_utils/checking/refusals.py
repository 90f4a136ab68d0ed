"""Refuses answers that are not the student's own: our version, or torch's."""

import ast
import dis
import hashlib
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from course_utils import paths
from course_utils.checking.compare import Wrong
from course_utils.checking.registry import EXERCISES
from course_utils.notebook import cells

IMPORTERS = ("import_module", "__import__", "load_worker")
HIDERS = ("exec", "eval")  # nobody sees what they run
REQUESTS = ("isend", "irecv", "batch_isend_irecv")  # the functions that give them


def check_file(file: str, without: Iterable[str], ours: str) -> None:
    """Look at the names in a student's worker file.

    Args:
        file: its name; it may import what `ours` imports, and no other file of the course.
        without: names that do what the student is to write.
        ours: the course's own answer. A saved notebook may hold the student's in place of the stub.

    Raises:
        Wrong: one of them is used or could be, or a request is dropped before it is waited for.
    """
    files, given = cells.parts(), _modules(ast.parse(ours))
    try:
        tree = ast.parse((paths.workers() / file).read_text(encoding="utf-8", errors="replace"))
    except SyntaxError:
        return  # the run will report it, with its line
    for module, line in _modules(tree).items():
        ours = f"{module}.py" in files and f"{module}.py" != file
        if module not in given and (ours or _is_private(module)):
            raise Wrong(
                f"workers/{file}, line {line} imports {module}: that is the course's own version",
                "Write your own: then you know how it works.",
            )
    own = _defined(tree)
    for node in ast.walk(tree):
        for name in _names(node):
            if not (isinstance(node, ast.Name) and name in own):
                _check_name(name, without, f"workers/{file}, line {getattr(node, 'lineno', '?')}")
        if _hides_what_it_calls(node):
            raise Wrong(
                f"workers/{file}, line {node.lineno} runs code that the check cannot see",
                "Write it out: use a plain import, and neither exec nor eval.",
            )
        dropped = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if dropped and set(REQUESTS) & set(_names(node.value.func)):
            raise Wrong(
                f"workers/{file}, line {node.lineno} throws a request away",
                "A message is under way until you wait for its request: keep it, and wait.",
            )


def check_function(function: Callable, without: Iterable[str]) -> None:
    """Look at the names in a student's function, and in the functions that it calls.

    Raises:
        Wrong: it is the course's own, calls the course's own, or one of `without`.
    """
    seen: list[Any] = []
    wanted: list[Any] = [function]
    while wanted:
        called = wanted.pop()
        code = getattr(called, "__code__", None)
        if code is None or called in seen:
            continue
        seen.append(called)
        if _is_ours(code):
            raise Wrong(
                f"{called.__name__} is the course's own version", "Write your own, then check it."
            )
        hidden = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
        for name in set(hidden) & {*HIDERS, *IMPORTERS}:
            raise Wrong(f"{called.__name__} calls {name}", "Write the code out yourself.")
        for name in _names_in(code):
            _check_name(name, without, f"{function.__name__}")
            wanted.append(called.__globals__.get(name))


def _check_name(name: str, without: Iterable[str], where: str) -> None:
    if name in without:
        raise Wrong(
            f"{where} uses {name}, which does what you are asked to write",
            "Write it yourself, with the operations below it.",
        )


def _is_ours(code: CodeType) -> bool:
    """Whether a function comes from a worker file of the course, its package or its exercises."""
    folders = paths.workers(), paths.ROOT / "course_utils", EXERCISES
    return code.co_filename.startswith(tuple(map(str, folders)))


def _is_private(module: str) -> bool:
    """Whether a module is the package's own, or lies with the exercises or beside their probes."""
    if module.startswith("course_utils."):
        return module != "course_utils.worker"
    beside_probes = (EXERCISES / "probes" / f"{module}.py").exists()
    return beside_probes or module.partition(".")[0] == EXERCISES.name


def _modules(tree: ast.AST) -> dict[str, int]:
    """The modules that a file imports, with the line."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = node.lineno
            if node.module == "course_utils":
                found |= {f"course_utils.{alias.name}": node.lineno for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and _names(node.func):
            called, first = _names(node.func)[0], node.args[0]
            if called in IMPORTERS:
                name = getattr(first, "value", "")
                found[str(name).removesuffix(".py")] = node.lineno
    return found


def _hides_what_it_calls(node: ast.AST) -> bool:
    """Whether it runs a text as code, or imports a module whose name it computes."""
    if not isinstance(node, ast.Call) or not (called := _names(node.func)):
        return False
    by_name = bool(node.args) and isinstance(node.args[0], ast.Constant)
    plain = isinstance(node.func, ast.Name)  # model.eval() is something else
    return (plain and called[0] in HIDERS) or (called[0] in IMPORTERS and not by_name)


def _names(node: ast.AST) -> list[str]:
    """The names that a node of a syntax tree uses."""
    match node:
        case ast.Name(id=name) if isinstance(node.ctx, ast.Load):
            return [name]
        case ast.Attribute(attr=name):
            return [name]
        case ast.Import() | ast.ImportFrom():
            return [part for alias in node.names for part in alias.name.split(".")]
    return []


def _defined(tree: ast.AST) -> set[str]:
    """The names of the file's own variables, arguments and functions; none beside `import *`."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if isinstance(node.ctx, ast.Store):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return set()  # any of them may be an imported one
    return found


def _names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes that a function's code uses, inner functions' too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def stubs(tree: ast.AST) -> set[str]:
    """The functions and methods that still raise a bare NotImplementedError."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_open, node.body)):
            found.add(node.name)
    return found


def _is_open(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) and not raised.args else raised
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def is_as_given(file: str, digest: str) -> bool:
    """Whether a student has not yet changed a file that is whole, but wrong.

    The notebook cannot tell: once it is saved, its cell holds the student's answer.
    """
    text = (paths.workers() / file).read_bytes()
    return hashlib.sha256(text).hexdigest().startswith(digest)


def begun(file: str) -> str:
    """What is still a stub in a file where something else has been written; '' if nothing is."""
    try:
        now = stubs(ast.parse((paths.workers() / file).read_bytes()))
        asked = stubs(ast.parse(cells.sources().get(file, "")))
    except SyntaxError:
        return ""
    return ", ".join(sorted(now)) if now < asked else ""
