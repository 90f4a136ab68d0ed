"""How the notebooks start their worker files: on how many ranks, and with which arguments."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils import cells, paths
from nbtorchrun import arguments


@dataclass(frozen=True)
class Start:
    """One way in which a notebook starts a worker file.

    Attributes:
        file: the worker file.
        nproc: the number of ranks.
        arguments: what the script is given.
        fails: whether the notebook expects the run to fail.
    """

    file: str
    nproc: int
    arguments: tuple[str, ...] = ()
    fails: bool = False


def starts() -> dict[str, Start]:
    """The first start of every worker file that a notebook starts, in the notebooks' order."""
    found: dict[str, Start] = {}
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in cells.read(path)["cells"]:
            if cell["cell_type"] == "code":
                for start in starts_of("".join(cell["source"])):
                    found.setdefault(start.file, start)
    return found


def starts_of(source: str) -> Iterator[Start]:
    """What a code cell starts: by a magic, or by calls of `launch`."""
    for line in re.findall(r"^%%?torchrun (.*)$", source, re.MULTILINE):
        options = arguments.parse_torchrun(arguments.split(line))
        yield Start(options.file, options.nproc, tuple(options.arguments))
    if not source.startswith("%%"):
        plain = re.sub(r"^%.*$", "", source, flags=re.MULTILINE)
        calls = (node for node in ast.walk(ast.parse(plain)) if isinstance(node, ast.Call))
        yield from map(start_of, filter(is_launch, calls))


def is_launch(call: ast.Call) -> bool:
    """Whether a call is `launch("FILE", ...)`, with arguments that can be read from the cell."""
    named = isinstance(call.func, ast.Name) and call.func.id == "launch"
    return named and all(isinstance(argument, ast.Constant) for argument in call.args)


def start_of(call: ast.Call) -> Start:
    """What a call of `launch` starts; a number of ranks that a loop gives is taken to be 2."""
    file, *arguments = [str(node.value) for node in call.args]
    options = {
        word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)
    }
    fails = not options.get("check", True)
    return Start(file, options.get("nproc", 2), tuple(arguments), fails)
