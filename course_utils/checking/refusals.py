"""Refuses answers that are not the student's own: our version, or torch's.

This keeps students honest with themselves; it does not hunt for whoever hides what they call.
"""

import ast
import hashlib
from collections.abc import Iterable

from course_utils import cells, paths
from course_utils.checking.compare import Wrong

REQUESTS = ("isend", "irecv", "batch_isend_irecv")  # the functions that give them


def check_file(file: str, without: Iterable[str], ours: str) -> None:
    """Look at the names in a student's worker file.

    Args:
        file: its name; it may import what `ours` imports, and no other file of the course.
        without: names that do what the student is to write.
        ours: the course's own answer. A saved notebook may hold the student's in place of the stub.

    Raises:
        Wrong: one of them is used, or a request is dropped before it is waited for.
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
        dropped = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if dropped and set(REQUESTS) & set(_names(node.value.func)):
            raise Wrong(
                f"workers/{file}, line {node.lineno} throws a request away",
                "A message is under way until you wait for its request: keep it, and wait.",
            )


def _check_name(name: str, without: Iterable[str], where: str) -> None:
    if name in without:
        raise Wrong(
            f"{where} uses {name}, which does what you are asked to write",
            "Write it yourself, with the operations below it.",
        )


def _is_private(module: str) -> bool:
    """Whether a module is the package's own, or lies with the exercises."""
    if module.startswith(("course_utils.", "nbtorchrun.")):
        return module not in ("course_utils.worker", "nbtorchrun.worker")
    return module.partition(".")[0] == paths.LESSONS.name


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
    return found


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


def is_a_stub(file: str) -> bool:
    """Whether a student has not yet changed a file that is to be filled."""
    text = (paths.workers() / file).read_text(encoding="utf-8", errors="replace")
    return text == cells.sources().get(file) and bool(stubs(ast.parse(text)))


def begun(file: str) -> str:
    """What is still a stub in a file where something else has been written; '' if nothing is."""
    try:
        now = stubs(ast.parse((paths.workers() / file).read_bytes()))
        asked = stubs(ast.parse(cells.sources().get(file, "")))
    except SyntaxError:
        return ""
    return ", ".join(sorted(now)) if now < asked else ""
