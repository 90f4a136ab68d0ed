"""The answers with which every exercise is tried: its stub, our solution, wrong and right ones."""

import ast
import inspect
import sys
from functools import cache
from types import ModuleType

from course_utils import cells, files, paths
from course_utils.checking.check import Result, result
from course_utils.checking.on_ranks.cases import loaded
from course_utils.exercises import Exercise, find, read

EXERCISES = {
    exercise.number: exercise
    for exercise in map(read, sorted(paths.LESSONS.glob("nb[0-9]*/exercise_*.py")))
}
RETURNS = "->"  # a row whose old part is this has a function of the answer in place of the new one
LEAVES = """
import numpy, torch

def numpys(value):
    return leaves(value, lambda n: numpy.int64(n) if isinstance(n, int) else numpy.float64(n))

def leaves(value, form):
    if isinstance(value, (list, tuple)):
        return type(value)(leaves(each, form) for each in value)
    return form(value) if type(value) in (int, float) else value
"""


@cache
def lesson(number: str) -> ModuleType:
    """The whole file of an exercise, with the rows `WRONG` and `RIGHT`."""
    path = EXERCISES[number].path
    files.write_missing(*files.imported(path))
    if str(paths.workers()) not in sys.path:
        sys.path.append(str(paths.workers()))
    return loaded(path)


def stub(exercise: Exercise) -> str:
    """What the notebook has in place of an answer."""
    return cells.sources()[exercise.file]


def arguments(source: str) -> dict[tuple[str, str], list[str]]:
    """The names of the arguments of each function and method."""
    found = {}
    for top in ast.parse(source).body:
        for node in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(node, ast.FunctionDef):
                names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                found[getattr(top, "name", ""), node.name] = [each.arg for each in names]
    return found


def checked(number: str, answer: str) -> Result:
    """What `check` says about an answer."""
    (paths.workers() / find(number).file).write_text(answer)
    return result(number)


def changed(number: str, *parts: str) -> str:
    """The source of an answer: our solution, changed.

    Args:
        number: of the exercise.
        parts: `old, new, old, new, ...`: each old part is replaced by the new part after it, whose
            lines are indented like the line that the old part stands in. A single part is a whole
            source. With `->, form` every function returns `form` of what ours returns.

    Raises:
        ValueError: an old part does not stand there exactly once.
    """
    if len(parts) == 1:
        return parts[0]
    if parts[0] == RETURNS:
        return returning(number, parts[1])
    source = find(number).ours
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        if (times := source.count(old)) != 1:
            raise ValueError(
                f"{old!r} stands {times} times in the answer to {number}: "
                "quote a part that stands there once"
            )
        line = source[: source.index(old)].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        source = source.replace(old, new.replace("\n", f"\n{indent}"))
    return source


def returning(number: str, form: str) -> str:
    """Our solution, of which every function that the check calls returns `form` of its result."""
    names = inspect.signature(lesson(number).cases).parameters
    tree = ast.parse(find(number).ours)
    own = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name in names]
    for each in own:
        each.name = f"right_{each.name}"
    source = ast.unparse(tree) + LEAVES
    for each in own:
        source += f"\ndef {each.name.removeprefix('right_')}(*given, **named):\n"
        source += f"    return ({form})({each.name}(*given, **named))\n"
    return source
