"""What the student's source says about a line: the block that handles an error, and its loops."""

import ast
import tokenize
from collections.abc import Iterator

TRIES = (ast.Try, ast.TryStar)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def handler_at(file: str, line: int) -> tuple[str, bool]:
    """The innermost block at a line that runs after an error, and whether the error goes on.

    Returns:
        `finally`, `except` or `with`, or '' if there is none there.
    """
    found, size = ("", False), float("inf")
    for node in ast.walk(_tree(file)):
        for word, part, goes_on in _handlers(node):
            first, last = (part[0].lineno, part[-1].end_lineno) if part else (0, -1)
            if first <= line <= last and last - first <= size:
                found, size = (word, goes_on), last - first
    return found


def _handlers(node: ast.AST) -> Iterator[tuple[str, list, bool]]:
    if isinstance(node, TRIES):
        yield "finally", node.finalbody, True
        for each in node.handlers:
            raises = any(isinstance(part, ast.Raise) for part in ast.walk(each))
            yield "except", each.body, raises
    if isinstance(node, (ast.With, ast.AsyncWith)):  # while `__exit__` runs, that line does
        yield "with", [item.context_expr for item in node.items], True


def left_loop(file: str, beyond: int, inside: int) -> int | None:
    """The line of the outermost loop that has the line `inside`, and that `beyond` comes after.

    Both lines belong to the same function: a line of another function says nothing about the loop.
    """
    tree = _tree(file)
    if _function(tree, beyond) is not _function(tree, inside):
        return None
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, LOOPS)
        and node.lineno <= inside <= node.end_lineno < beyond
        and _function(tree, node.lineno) is _function(tree, inside)
    ]
    return min((loop.lineno for loop in loops), default=None)


def _function(tree: ast.Module, line: int) -> ast.AST | None:
    """The innermost function that has a line; None for the module's own."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= node.end_lineno
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _tree(file: str) -> ast.Module:
    """The file's syntax tree; an empty one if it can't be read."""
    try:
        with tokenize.open(file) as source:  # in the encoding that the file declares
            return ast.parse(source.read())
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
        return ast.Module([], [])
