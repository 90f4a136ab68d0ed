"""Python, what is installed beside it, and the data."""

import importlib.util
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from course_utils import paths
from course_utils.doctor.finding import Finding

NEEDED = ("torch", "numpy", "matplotlib", "IPython")  # by labs; of torchvision torch is asked
OUR_OWN = paths.ROOT / ".venv"
SETUP = "./run.sh setup makes .venv with all of it; or name a Python that has it in COURSE_PYTHON"


def look() -> Iterator[Finding]:
    """The version of Python, and whether what the labs import is there."""
    yield Finding("ok", "Python", f"{platform.python_version()}, {sys.executable}")
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    yield packages(kind_of(Path(sys.prefix)), missing)


def kind_of(prefix: Path) -> str:
    """What kind of environment lies in `prefix`, and where."""
    if prefix == OUR_OWN and not (prefix / "course-stamp").exists():
        return f"the course's own, whose setup did not come to its end, {prefix}"
    if (prefix / "conda-meta").is_dir():
        return f"a conda environment, {prefix}"
    kind = "a virtual environment" if (prefix / "pyvenv.cfg").exists() else "no virtual environment"
    return f"{kind}, {prefix}"


def packages(kind: str, missing: list[str]) -> Finding:
    """Whether what the labs import is installed."""
    if missing:
        return Finding("problem", "environment", f"{kind}; it has no {', '.join(missing)}", SETUP)
    return Finding("ok", "environment", kind)


def look_at_extras() -> Iterator[Finding]:
    """JupyterLab, without which demos and worker files run; data, without which every lab does."""
    if importlib.util.find_spec("jupyterlab"):
        yield Finding("ok", "JupyterLab", "installed")
    else:
        yield Finding("note", "JupyterLab", "not installed: demos run, notebooks do not open")
    for name, folder in (("MNIST", "MNIST"), ("CIFAR-10", "cifar-10-batches-py")):
        there = (paths.data() / folder).is_dir()
        found = "in data/" if there else "not in data/; the labs do without"
        yield Finding("ok" if there else "note", name, found)
