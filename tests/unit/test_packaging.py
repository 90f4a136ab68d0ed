import contextlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from course_utils import cells
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {
    "torch": "pytorch",
    "matplotlib": "matplotlib-base",
}


def direct() -> dict[str, str]:
    """Each package that a student needs, by pyproject.toml, with its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(line.split(">=") for line in project["dependencies"])


def pinned(file: str = "requirements.txt") -> dict[str, str]:
    """Each package of a file of requirements with its version."""
    lines = (ROOT / file).read_text().splitlines()
    return dict(line.split(";")[0].strip().split("==") for line in lines)


def conda() -> dict[str, str]:
    """Each package of environment.yml with what it asks of its version."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    found = (re.fullmatch(r"([\w-]+)(.*)", line) for line in lines if isinstance(line, str))
    return {match[1]: match[2] for match in found}


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


EXTRAS = [
    "deepspeed",
    "site",
    "tests",
    "types",
]  # of pyproject.toml, each with a file of requirements


@pytest.mark.parametrize("file", ["requirements.txt", *map("requirements-{}.txt".format, EXTRAS)])
def test_every_version_is_exact_and_no_address_is_given(file):
    for line in (ROOT / file).read_text().splitlines():
        assert re.fullmatch(r'[\w.-]+==[\w.]+(; sys_platform == "(linux|darwin)")?', line), line


def test_each_direct_dependency_is_pinned_within_its_bound():
    for name, bound in direct().items():
        assert numbers(pinned()[name]) >= numbers(bound), name


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_pinned_within_its_bounds_and_changes_nothing_else(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = pinned(f"requirements-{extra}.txt")
    for name, bound in (x.split(">=") for x in project["optional-dependencies"][extra]):
        assert numbers((pinned() | pins)[name]) >= numbers(bound), name
    assert not pins.keys() & pinned().keys()


def test_extras_agree_about_what_both_install():
    for pair in combinations(EXTRAS, 2):
        one, other = (pinned(f"requirements-{extra}.txt") for extra in pair)
        assert {name: one[name] for name in one.keys() & other} == {
            name: other[name] for name in one.keys() & other
        }


@needs(modules=("deepspeed",))
def test_the_cells_of_notebook_05_find_what_deepspeed_needs():
    for name in pinned("requirements-deepspeed.txt"):
        importlib.metadata.version(name)


def test_every_version_installs_on_the_oldest_python_in_wide_use():
    # Debian 12 has 3.11.2; some packages ask for a later 3.11.
    for name, version in pinned().items():
        try:
            installed = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:  # of another platform
            continue
        if installed["Version"] == version:
            assert SpecifierSet(installed["Requires-Python"] or "").contains("3.11.2"), name


def test_the_backend_of_the_editable_install_is_pinned():
    # ./run.sh installs the course without network, so pip must find setuptools already there.
    assert "setuptools" in pinned()


def test_a_student_installs_nothing_that_only_tests_need():
    """Whatever the student's packages ask for is in their list, and nothing of the tests' is."""
    needed, found = {*direct()}, set()
    while needed - found:
        found |= (new := needed - found)
        for name in new:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                asked = map(Requirement, importlib.metadata.requires(name) or ())
                needed |= {
                    x.name for x in asked if not x.marker or x.marker.evaluate({"extra": ""})
                }
    names = {canonicalize_name(name) for name in needed}
    assert not names & {canonicalize_name(name) for name in pinned("requirements-tests.txt")}
    assert "pytest" in names  # nbval's


def test_conda_gets_what_pip_gets_and_nothing_else():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {name: "=" + pinned()[name] for name in [*direct(), "setuptools"]}
    expected = {CONDA_NAMES.get(name, name): version for name, version in versions.items()}
    assert conda() == expected | {"python": project["requires-python"], "pip": conda()["pip"]}
    assert environment["name"] == "distributed-course"
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}


def ruff(*arguments: str, folder: Path) -> None:
    """Let ruff look for mistakes and at the layout; it finds nothing in `folder`."""
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *arguments, "--no-cache"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing_in_the_package_the_tests_and_the_notebooks():
    ruff(folder=ROOT)


def test_ruff_finds_nothing_in_the_worker_files(tmp_path):
    # Ruff passes over cells that begin with a magic of ours, so it is given what they write.
    workers = tmp_path / "workers"
    workers.mkdir()
    for name, source in cells.sources().items():
        (workers / name).write_text(source)
    # `src`: empty, or their imports of each other would be sorted apart from those of torch.
    ruff(f"--config={ROOT / 'pyproject.toml'}", "--config=src = []", folder=tmp_path)
