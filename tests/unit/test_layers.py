"""Who may know whom in the packages: read from their imports, those inside functions too."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from course_utils import paths

PACKAGES = ("nbtorchrun", "course_utils", "tools", "lessons")
# What each room of the library may import of it, beside itself; one not named here may import all.
MAY_KNOW = {
    "errors": set(),
    "settings": {"errors"},
    "palette": set(),
    "formats": set(),
    "runs": set(),
    "worker": set(),
    "meter": set(),
    "diagnosis": {"formats", "settings", "runs"},
    "launcher": {"errors", "formats", "settings", "worker", "runs", "diagnosis"},
    "display": {"errors", "settings", "formats", "palette", "runs", "diagnosis", "launcher"},
}
# The packages that each may import.
PACKAGES_KNOW = {
    "nbtorchrun": set(),
    "course_utils": {"nbtorchrun"},
    "tools": {"nbtorchrun", "course_utils"},
    "lessons": {"nbtorchrun", "course_utils"},
}


def package(module: str) -> str:
    """The package that holds a module."""
    return module.partition(".")[0]


def room(module: str) -> str:
    """The file or folder of the package's top level that holds a module."""
    return module.split(".")[1] if "." in module else "__init__"


def modules() -> dict[str, Path]:
    """Every module of the packages, by its dotted name."""
    found = {}
    for path in (path for name in PACKAGES for path in (paths.ROOT / name).rglob("*.py")):
        parts = path.relative_to(paths.ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the packages that a file imports, wherever in the file."""
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


@pytest.mark.parametrize("name", PACKAGES)
def test_no_folder_imports_one_that_imports_it(name):
    folders: dict[str, set[str]] = {}
    for module, known in GRAPH.items():
        if package(module) == name:
            others = {room(other) for other in known if package(other) == name}
            folders.setdefault(room(module), set()).update(others - {room(module), "__init__"})
    TopologicalSorter(folders).prepare()


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_knows_only_whom_it_may(name):
    for module, known in GRAPH.items():
        if package(module) == name:
            others = {package(other) for other in known} - {name}
            assert others <= PACKAGES_KNOW[name], f"{module} imports {others - PACKAGES_KNOW[name]}"


def test_each_room_of_the_library_knows_only_whom_it_may():
    for name, known in GRAPH.items():
        allowed = MAY_KNOW.get(room(name)) if package(name) == "nbtorchrun" else None
        if allowed is not None:
            others = {room(other) for other in known} - {room(name)}
            assert others <= allowed, f"{name} imports {others - allowed}"


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
