"""The demos: cells of the notebooks tagged `demo:NAME`, with the proofs tagged `proof:NAME`."""

import argparse
import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils import magics, notebooks, proofs
from course_utils.launch import InputError, LaunchError, launch


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
    cells = list(notebooks.cells())
    sources = notebooks.sources()
    found = {}
    for cell in cells:
        for name in tagged(cell, "demo:"):
            script = sources[cell.file]
            about = (ast.get_docstring(ast.parse(script)) or cell.file).partition("\n")[0]
            proofs_ = tuple(step(other) for other in cells if name in tagged(other, "proof:"))
            found[name] = Demo(name, cell.notebook, about, script, step(cell), proofs_)
    return found


def tagged(cell: notebooks.Cell, prefix: str) -> list[str]:
    """The names in the cell's tags that begin with `prefix`."""
    return [tag.removeprefix(prefix) for tag in cell.tags if tag.startswith(prefix)]


def step(cell: notebooks.Cell) -> Step:
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


def options_of(demo: Demo, arguments: Sequence[str]) -> None:
    """Check a demo's own options before anything starts, by its script's `parse_arguments`.

    Raises:
        InputError: an option it does not have, or a value that cannot be.
        SystemExit: after `--help`, which is printed.
    """
    tree = ast.parse(demo.script)
    parse = [node for node in tree.body if getattr(node, "name", "") == "parse_arguments"]
    if not parse:
        if arguments:
            raise InputError(f"demo {demo.name} has no option {arguments[0]}")
        return
    namespace = {"argparse": _QuietArgparse(demo.name), "__doc__": ast.get_docstring(tree)}
    exec(compile(ast.Module(parse, []), demo.main.file, "exec"), namespace)
    namespace["parse_arguments"](list(arguments))


class _QuietArgparse:
    """The module argparse, with parsers that raise one sentence and bear the demo's name."""

    def __init__(self, demo: str):
        self._demo = demo

    def __getattr__(self, name: str) -> object:
        return getattr(argparse, name)

    def ArgumentParser(self, **options: object) -> argparse.ArgumentParser:
        """A parser called `./run.sh demo NAME`."""
        options |= {"prog": f"./run.sh demo {self._demo} [--nproc-per-node N]"}
        parser = argparse.ArgumentParser(**options)

        def error(message: str) -> None:
            raise InputError(f"demo {self._demo}: {message} (./run.sh demo {self._demo} --help)")

        parser.error = error
        return parser


def run(demo: Demo, arguments: Sequence[str], nproc: int | None, **options: Any) -> bool:
    """Run a demo live, then its proofs; say whether all went well.

    Args:
        demo: the demo.
        arguments: its script's own; without any, those of its notebook.
        nproc: number of ranks; None for its notebook's.
        **options: of `launch`.
    """
    main = demo.main
    try:
        ranks = main.nproc if nproc is None else nproc
        launch(main.file, *(arguments or main.arguments), nproc=ranks, **options)
        return prove(demo)
    except LaunchError as error:
        if error.run is None:
            raise
        print(f"\n{error}\nLogs: {error.run.dir}", flush=True)
        return False


def prove(demo: Demo) -> bool:
    """Run the proofs of a demo and print them as a table; say whether every claim holds."""
    if not demo.proofs:
        return True
    print(f"\nProving what notebook {demo.notebook} claims ...", flush=True)
    rows, broken = [], []
    for each in demo.proofs:
        found = proofs.reported(launch(each.file, *each.arguments, nproc=each.nproc, show=False))
        rows += found
        broken += [row.claim for row in found if not row.holds] if found else [each.file]
    print(proofs.text(rows))
    for claim in broken:
        print(f"NOT PROVEN: {claim}")
    if not broken:
        print(f"all {len(rows)} claims hold")
    return not broken
