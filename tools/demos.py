"""The demos: cells of the notebooks tagged `demo:NAME`, with the proofs tagged `proof:NAME`."""

import argparse
import ast
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

from course_utils import cells, paths
from course_utils.files import script_path
from nbtorchrun.arguments import parse_torchrun
from nbtorchrun.errors import InputError, LaunchError
from nbtorchrun.launcher.options import MAX_RANKS, Options, add_flags
from tools import near_miss
from tools.wrapping import wrapped

EXTRAS = "requirements-deepspeed.txt"  # packages that only some demos need
TIMEOUT = 600.0  # seconds
ANY = range(1, MAX_RANKS + 1)  # numbers of ranks


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
        notebook: the name of its notebook, without the ending.
        source: the text of its script.
        main: the launch that is shown.
        proofs: the launches that prove its claims.
        packages: those of `EXTRAS` that it needs, from its tags `needs:PACKAGE`.
        minutes: how long it takes on two busy cores, from its tag `minutes:N`; 0 if at most two.
    """

    name: str
    notebook: str
    source: str
    main: Step
    proofs: tuple[Step, ...]
    packages: tuple[str, ...]
    minutes: int

    @cached_property
    def _script(self) -> ast.Module:
        return ast.parse(self.source)

    @property
    def about(self) -> str:
        """The first line of its script's docstring."""
        return (ast.get_docstring(self._script) or self.main.file).partition("\n")[0]

    @property
    def has_options(self) -> bool:
        """Whether its script has a `parse_arguments`."""
        return any(getattr(node, "name", "") == "parse_arguments" for node in self._script.body)


def find_all() -> dict[str, Demo]:
    """Every demo of the notebooks, by name, in the notebooks' order."""
    found_cells, written = list(cells.cells()), cells.parts()
    found = {}
    for cell in found_cells:
        for name in tagged(cell, "demo:"):
            source = cells.GAP.join(part.text for part in written[cell.file])
            proofs_ = tuple(step(other) for other in found_cells if name in tagged(other, "proof:"))
            packages = tuple(tagged(cell, "needs:"))
            minutes = sum(map(int, tagged(cell, "minutes:")))
            launches = step(cell), proofs_
            found[name] = Demo(name, cell.notebook, source, *launches, packages, minutes)
    return found


def tagged(cell: cells.Cell, prefix: str) -> list[str]:
    """The names in the cell's tags that begin with `prefix`."""
    return [tag.removeprefix(prefix) for tag in cell.tags if tag.startswith(prefix)]


def step(cell: cells.Cell) -> Step:
    """The launch that a cell makes."""
    if cell.magic == "worker":
        return Step(cell.file, 2, ())
    options = parse_torchrun(cell.line)
    return Step(options.file, options.nproc, tuple(options.arguments))


def find(name: str) -> Demo:
    """The demo of that name.

    Raises:
        InputError: there is none.
    """
    demos = find_all()
    if name not in demos:
        if meant := near_miss.suggestion(name, demos):
            raise InputError(f"there is no demo {name!r}{meant} ./run.sh list shows them all")
        raise InputError(f"there is no demo {name!r}; choose one of {', '.join(demos) or 'none'}")
    return demos[name]


def title(notebook: str) -> str:
    """The heading of a notebook, as `04 · Ring all-reduce`; its file's name if it has none."""
    first = cells.read(paths.NOTEBOOKS / f"{notebook}.ipynb")["cells"][0]
    heading = "".join(first["source"]).partition("\n")[0]
    return heading.removeprefix("# ") if heading.startswith("# ") else notebook


def options_help(demo: Demo) -> str:
    """What a demo's script says about itself and its options in its own `--help`.

    Raises:
        LaunchError: the script is broken; the verdict says where.
    """
    if not demo.has_options:
        return f"{wrapped(demo.about, 0)}\n"
    from nbtorchrun.launcher.running import launch_path  # needs more than Python

    width = {"COLUMNS": shutil.get_terminal_size().columns}
    run = launch_path(script_path(demo.main.file), ["--help"], Options(nproc=1, env=width))
    if not run.ok:
        raise LaunchError(str(run.verdict), run)
    # Without the usage line, which lacks the launch options.
    return run.ranks[0].stdout.partition("\n\n")[2]


def launching(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that every demo has, beside those of its script."""
    group = parser.add_argument_group("launch options")
    add_flags(group, nproc=None, timeout=TIMEOUT)
    group.add_argument(
        "--compare", action="store_true", help="run it twice more, to measure speed-up and bytes"
    )
    return parser


def launch_help(demo: Demo) -> str:
    """What the launch options mean; for a demo of one process, those that it takes."""
    shown = launching(argparse.ArgumentParser(usage=argparse.SUPPRESS, add_help=False))
    head, *options = re.split(r"\n(?=  -)", shown.format_help().rstrip())
    if demo.main.nproc == 1:
        options = [each for each in options if each.lstrip().startswith(("--timeout", "--stall"))]
    return "\n".join([head, *options, ""])


def check_arguments(demo: Demo, arguments: Sequence[str]) -> None:
    """Raise an InputError if a demo gets options, but its script has none."""
    if arguments and not demo.has_options and not {"--help", "-h"} & set(arguments):
        known = near_miss.options(launching(argparse.ArgumentParser()).format_usage())
        meant = near_miss.suggestion(arguments[0], known)
        said = f"demo {demo.name} takes no options of its own, so not {arguments[0]}{meant}"
        raise InputError(said)


def check_ranks(demo: Demo, ranks: int) -> None:
    """Raise an InputError if a demo can't run on so many ranks, on all machines together."""
    call = f"./run.sh demo {demo.name}"
    fitting = fitting_ranks(demo)
    if ranks not in fitting and demo.main.nproc == 1:
        raise InputError(f"demo {demo.name} runs as one process, not as {ranks} ranks: {call}")
    if ranks not in fitting:
        *others, last = map(str, fitting[:1] if isinstance(fitting, range) else fitting)
        needed = f"{', '.join(others)} or {last}" if others else last
        needed = f"at least {needed}" if isinstance(fitting, range) else needed
        raise InputError(
            f"demo {demo.name} needs {needed} ranks, not {ranks}: {call} -n {fitting[0]}"
        )


def check_packages(demo: Demo) -> None:
    """Raise an InputError if a demo needs packages that are not installed."""
    if missing := [package for package in demo.packages if not find_spec(package)]:
        pip = f"{sys.executable} -m pip install --no-build-isolation -r {paths.ROOT / EXTRAS}"
        raise InputError(f"demo {demo.name} needs {' and '.join(missing)}. Install with: {pip}")


def fitting_ranks(demo: Demo) -> Sequence[int]:
    """The numbers of ranks that a demo runs on: its `init` names them."""
    if demo.main.nproc == 1:
        return (1,)
    for node in ast.walk(ast.parse(cells.sources()[demo.main.file])):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "init":
            for option in node.keywords:
                if option.arg == "ranks":
                    named = ast.literal_eval(option.value)
                    return (named,) if isinstance(named, int) else named
                if option.arg == "at_least":
                    return range(ast.literal_eval(option.value), ANY[-1] + 1)
    return ANY
