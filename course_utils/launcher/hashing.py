"""Finds where a script depends on the order of a set, which warm ranks share and others do not.

A string's hash is drawn anew in each Python, and with it the order of a set of strings. Forked
ranks all have the hash of their parent: a loop of collectives over a set would work only there.
"""

import ast
from pathlib import Path

IN_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "next", "dict", "join"}
MAKES_A_SET = {"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"}


def order_of_a_set(path: Path) -> int | None:
    """The first line that goes through a set in its own order, or hashes; None if there is none."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None  # the ranks say so
    nodes = list(ast.walk(tree))
    sets: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and _is_set(node.value, sets):
            sets |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    lines = [node.lineno for node in nodes for used in _gone_through(node) if _is_set(used, sets)]
    lines += [node.lineno for node in nodes if isinstance(node, ast.Call) and _name(node) == "hash"]
    return min(lines, default=None)


def _gone_through(node: ast.AST) -> list[ast.expr]:
    """What `node` goes through, element by element, so that the order can matter."""
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        return [generator.iter for generator in node.generators]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call) and _name(node) in IN_ORDER:
        return node.args
    if isinstance(node, ast.Call) and _name(node) == "pop" and not node.args:
        return [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return []


def _is_set(node: ast.expr, sets: set[str]) -> bool:
    """Whether an expression is a set, and of strings, as far as the file shows."""
    if isinstance(node, ast.Set):
        return any(
            isinstance(item, ast.JoinedStr)
            or (isinstance(item, ast.Constant) and isinstance(item.value, (str, bytes)))
            for item in node.elts
        )
    if isinstance(node, ast.Name):
        return node.id in sets
    if isinstance(node, ast.BinOp):
        return _is_set(node.left, sets) or _is_set(node.right, sets)
    if isinstance(node, ast.Call) and _name(node) in IN_ORDER:
        return any(_is_set(argument, sets) for argument in node.args)
    if isinstance(node, ast.Call) and _name(node) in MAKES_A_SET:
        return not any(isinstance(a, ast.Call) and _name(a) == "range" for a in node.args)
    return isinstance(node, ast.SetComp)


def _name(call: ast.Call) -> str:
    """The last name of what is called."""
    return getattr(call.func, "id", None) or getattr(call.func, "attr", "")
