"""Who may know whom in the package: read from its imports, those inside functions too."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from course_utils import paths

PACKAGE = paths.ROOT / "course_utils"
# What each room may import of the package, beside itself; a room not named here may import all.
MAY_KNOW = {
    "errors": set(),
    "paths": {"errors"},
    "palette": set(),
    "worker": set(),
    "meter": set(),
    "cost": set(),
    "runs": set(),
    "diagnosis": {"paths", "runs"},
    "launcher": {"errors", "paths", "worker", "runs", "diagnosis"},
    "formats": set(),
    "display": {"errors", "formats", "palette", "runs", "diagnosis", "launcher"},
    "show": {"errors", "formats", "palette", "runs", "display"},
    "data": {"errors", "paths"},
}
KNOW_EVERYTHING = {"__init__", "__main__", "notebook"}


def room(module: str) -> str:
    """The file or folder of the package's top level that holds a module."""
    return module.split(".")[1] if "." in module else "__init__"


def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(paths.ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, wherever in the file."""
    wanted = set()
    for node in ast.walk(ast.parse(path.read_text())):
        assert not getattr(node, "level", 0), f"{path}: name the module that is imported in full"
        if isinstance(node, ast.Import):
            wanted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
            names = {alias.name for alias in node.names}
            whole = len(submodules) < len(names) or node.module not in known
            wanted |= submodules | ({node.module} if whole else set())
    return {name for name in wanted if name in known}


GRAPH = {name: imports(path, modules()) for name, path in modules().items()}


def test_no_module_imports_one_that_imports_it():
    TopologicalSorter(GRAPH).prepare()  # raises CycleError with the circle


def test_each_room_knows_only_whom_it_may():
    for name, known in GRAPH.items():
        here = room(name)
        allowed = MAY_KNOW.get(here)
        others = {room(other) for other in known} - {here}
        if allowed is not None:
            assert others <= allowed, f"{name} imports {others - allowed}"
        elif here not in KNOW_EVERYTHING:
            assert not others & {"__init__", "__main__"}, f"{name} imports the face"


def test_no_function_hides_the_module_of_its_own_name():
    for name, path in modules().items():
        if path.name == "__init__.py":
            bound = {
                alias.asname or alias.name
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.ImportFrom) and node.module != name
                for alias in node.names
            }
            hidden = {member for member in bound if f"{name}.{member}" in modules()}
            assert not hidden, f"{name} hides {hidden}"
