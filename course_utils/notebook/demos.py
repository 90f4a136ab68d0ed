"""The demos: cells of the notebooks tagged `demo:NAME`, with the proofs tagged `proof:NAME`."""

import ast
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils import paths
from course_utils.errors import InputError
from course_utils.launcher.options import Options
from course_utils.notebook import cells
from course_utils.notebook.arguments import parse_torchrun
from course_utils.notebook.files import script_path

READ_OPTIONS = paths.ROOT / "course_utils" / "notebook" / "read_options.py"


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
        about: the first line of its script's docstring.
        has_options: whether its script has a `parse_arguments`.
        main: the launch that is shown.
        proofs: the launches that prove its claims.
    """

    name: str
    notebook: str
    about: str
    has_options: bool
    main: Step
    proofs: tuple[Step, ...]


def find_all() -> dict[str, Demo]:
    """Every demo of the notebooks, by name, in the notebooks' order."""
    found_cells = list(cells.cells())
    sources = cells.sources()
    found = {}
    for cell in found_cells:
        for name in tagged(cell, "demo:"):
            script = ast.parse(sources[cell.file])
            about = (ast.get_docstring(script) or cell.file).partition("\n")[0]
            options = any(getattr(node, "name", "") == "parse_arguments" for node in script.body)
            proofs_ = tuple(step(other) for other in found_cells if name in tagged(other, "proof:"))
            found[name] = Demo(name, cell.notebook, about, options, step(cell), proofs_)
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
        raise InputError(f"there is no demo {name!r}; choose one of {', '.join(demos) or 'none'}")
    return demos[name]


def title(notebook: str) -> str:
    """The heading of a notebook, as `04 · Ring all-reduce`; its file's name if it has none."""
    first = cells.read(paths.NOTEBOOKS / f"{notebook}.ipynb")["cells"][0]
    heading = "".join(first["source"]).partition("\n")[0]
    return heading.removeprefix("# ") if heading.startswith("# ") else notebook


def options_help(demo: Demo) -> str:
    """What a demo's script says about itself and its options in its own `--help`."""
    if not demo.has_options:
        return f"{demo.about}\n"
    _, said = _read_options(demo, ["--help"], demo.main.nproc)
    return said.partition("\n\n")[2]  # without the usage line, which lacks the launch options


def check_options(demo: Demo, arguments: Sequence[str], ranks: int) -> None:
    """Let a demo's script judge its options, and the number of ranks, before any rank starts.

    Args:
        ranks: how many there will be, on all machines.

    Raises:
        InputError: the script has no such option, or refuses a value or the number of ranks.
    """
    if (fitting := fitting_ranks(demo)) and ranks not in fitting:
        numbers = ", ".join(map(str, fitting[:-1])) + " or " * (len(fitting) > 1) + str(fitting[-1])
        raise InputError(f"demo {demo.name} needs {numbers} ranks, not {ranks}: -n {fitting[0]}")
    if not demo.has_options:
        if arguments:
            raise InputError(f"demo {demo.name} takes no options of its own, so not {arguments[0]}")
        return
    status, said = _read_options(demo, arguments, ranks)
    if status:
        reason = said.rpartition("error: ")[2].strip()
        raise InputError(f"demo {demo.name}: {reason} (./run.sh demo {demo.name} --help)")


def fitting_ranks(demo: Demo) -> tuple[int, ...]:
    """The numbers of ranks that a demo's `init(ranks=...)` names; empty if it names none."""
    for node in ast.walk(ast.parse(cells.sources()[demo.main.file])):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "init":
            for option in node.keywords:
                if option.arg == "ranks":
                    named = ast.literal_eval(option.value)
                    return (named,) if isinstance(named, int) else named
    return ()


def _read_options(demo: Demo, arguments: Sequence[str], ranks: int) -> tuple[int, str]:
    """The exit status of the script's own `parse_arguments`, 0 if it returned, and its output.

    It runs in the helper process that will also start the ranks, so torch is imported only once.
    """
    from course_utils.launcher.running import launch_path  # needs more than Python

    words = [str(script_path(demo.main.file)), demo.name, str(ranks), *arguments]
    width = {"COLUMNS": shutil.get_terminal_size().columns}
    run = launch_path(READ_OPTIONS, words, Options(nproc=1, env=width))
    if not run.ok:  # the script is broken: its ranks will show where
        return 0, ""
    (answer,) = run.reports
    return answer["status"], answer["said"]
