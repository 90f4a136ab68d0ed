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
    sets = _named_sets(nodes, set())
    if sets:  # again, for a function that returns a name
        sets = _named_sets(nodes, sets)
    lines = [node.lineno for node in nodes for used in _gone_through(node) if _is_set(used, sets)]
    lines += [
        node.lineno for node in nodes if isinstance(node, ast.Call) and _name(node.func) == "hash"
    ]
    return min(lines, default=None)


def _named_sets(nodes: list[ast.AST], sets: set[str]) -> set[str]:
    """The names in `sets`, and those that `nodes` give to sets."""
    found = set(sets)
    for node in nodes:
        found |= _named(node, found) - {""}
    return found


def _named(node: ast.AST, sets: set[str]) -> set[str]:
    """The names that `node` gives to sets: of variables, of attributes, and of functions."""
    if isinstance(node, ast.Assign) and _is_set(node.value, sets):
        return {_name(target) for target in node.targets}
    if isinstance(node, ast.AnnAssign) and node.value and _is_set(node.value, sets):
        return {_name(node.target)}
    if isinstance(node, ast.FunctionDef):
        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
        if any(value is not None and _is_set(value, sets) for value in returned):
            return {node.name}
    return set()


def _gone_through(node: ast.AST) -> list[ast.expr]:
    """What `node` goes through, element by element, so that the order can matter."""
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        return [generator.iter for generator in node.generators]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call) and _name(node.func) in IN_ORDER:
        return node.args
    if isinstance(node, ast.Call) and _name(node.func) == "pop" and not node.args:
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
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _name(node) in sets
    if isinstance(node, ast.BinOp):
        return any(_is_set(side, sets) or _is_keys(side) for side in (node.left, node.right))
    if isinstance(node, ast.Call) and _name(node.func) in sets:
        return True
    if isinstance(node, ast.Call) and _name(node.func) in IN_ORDER:
        return any(_is_set(argument, sets) for argument in node.args)
    if isinstance(node, ast.Call) and _name(node.func) in MAKES_A_SET:
        return not any(isinstance(a, ast.Call) and _name(a.func) == "range" for a in node.args)
    return isinstance(node, ast.SetComp)


def _is_keys(node: ast.expr) -> bool:
    """Whether an expression is the keys of a dict, from which operators make a set."""
    return isinstance(node, ast.Call) and _name(node.func) == "keys"


def _name(node: ast.expr) -> str:
    """The name of a variable, the last name of an attribute; '' of anything else."""
    return getattr(node, "id", None) or getattr(node, "attr", "")
