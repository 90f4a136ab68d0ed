"""The demos: cells of the notebooks tagged `demo:NAME`, with the proofs tagged `proof:NAME`."""

import __future__

import argparse
import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils import paths
from course_utils.errors import InputError
from course_utils.notebook import cells, magics


@dataclass(frozen=True)
class Step:
    """A launch that a notebook's cell makes."""

    file: str
    nproc: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Demo:
    """A demo.

    Attributes:
        name: as in `./run.sh demo NAME`.
        notebook: where it is from.
        about: the first line of its script's docstring.
        script: its source.
        main: the launch that is shown.
        proofs: the launches that prove its claims afterwards.
    """

    name: str
    notebook: str
    about: str
    script: str
    main: Step
    proofs: tuple[Step, ...]


def find_all() -> dict[str, Demo]:
    """Every demo of the notebooks, by name, in the notebooks' order."""
    found_cells = list(cells.cells())
    sources = cells.sources()
    found = {}
    for cell in found_cells:
        for name in tagged(cell, "demo:"):
            script = sources[cell.file]
            about = (ast.get_docstring(ast.parse(script)) or cell.file).partition("\n")[0]
            proofs_ = tuple(step(other) for other in found_cells if name in tagged(other, "proof:"))
            found[name] = Demo(name, cell.notebook, about, script, step(cell), proofs_)
    return found


def tagged(cell: cells.Cell, prefix: str) -> list[str]:
    """The names in the cell's tags that begin with `prefix`."""
    return [tag.removeprefix(prefix) for tag in cell.tags if tag.startswith(prefix)]


def step(cell: cells.Cell) -> Step:
    """The launch that a cell makes."""
    if cell.magic == "worker":
        return Step(cell.file, 2, ())
    options = magics.parse_torchrun(cell.line)
    return Step(options.file, options.nproc, tuple(options.arguments))


def find(name: str) -> Demo:
    """The demo of that name.

    Raises:
        InputError: there is none.
    """
    demos = find_all()
    if name not in demos:
        raise InputError(f"there is no demo {name!r}; there are: {', '.join(demos) or 'none'}")
    return demos[name]


def title(notebook: str) -> str:
    """The heading of a notebook, as `04 · Ring all-reduce`; its file's name if it has none."""
    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    heading = "".join(first).partition("\n")[0]
    return heading.removeprefix("# ") if heading.startswith("# ") else notebook


def options_of(demo: Demo, arguments: Sequence[str], launching: str = "") -> None:
    """Check a demo's own options before anything starts, by its script's `parse_arguments`.

    Args:
        demo: the demo.
        arguments: what was given for its script.
        launching: what its help says below about options that are not the script's.

    Raises:
        InputError: an option it does not have, or a value that cannot be.
        SystemExit: after `--help`, which is printed.
    """
    tree = ast.parse(demo.script)
    parse = [node for node in tree.body if getattr(node, "name", "") == "parse_arguments"]
    parsers = _QuietArgparse(demo.name, launching)
    if parse:
        namespace = {"argparse": parsers, "__doc__": ast.get_docstring(tree)}
        later = __future__.annotations.compiler_flag  # annotations name what is not imported here
        exec(compile(ast.Module(parse, []), demo.main.file, "exec", later), namespace)
        namespace["parse_arguments"](list(arguments))
    else:
        parsers.ArgumentParser(description=demo.about).parse_args(arguments)


class _QuietArgparse:
    """The module argparse, with parsers that raise one sentence and bear the demo's name."""

    def __init__(self, demo: str, launching: str):
        self._demo = demo
        self._launching = launching

    def __getattr__(self, name: str) -> object:
        return getattr(argparse, name)

    def ArgumentParser(self, **options: object) -> argparse.ArgumentParser:
        """A parser called `./run.sh demo NAME`."""
        options |= {
            "prog": f"./run.sh demo {self._demo}",
            "usage": "%(prog)s [--nproc-per-node N] [options]",
            "epilog": self._launching,
            "formatter_class": argparse.RawDescriptionHelpFormatter,
        }
        parser = argparse.ArgumentParser(**options)

        def error(message: str) -> None:
            raise InputError(f"demo {self._demo}: {message} (./run.sh demo {self._demo} --help)")

        parser.error = error
        return parser
