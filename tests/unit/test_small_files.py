"""The files at the top of the repository that other programs and people read."""

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from course_utils import paths
from tests.unit.run_sh.checkout import Checkout
from tests.unit.test_packaging import pinned
from tools.__main__ import parser

ROOT = paths.ROOT


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# --- The container for editors and Codespaces ----------------------------------------------------

DEVCONTAINER = json.loads(text(".devcontainer/devcontainer.json"))
# The part of the schema of containers.dev that we use.
SCHEMA = {
    "name": str,
    "build": dict,
    "remoteUser": str,
    "init": bool,
    "runArgs": list,
    "hostRequirements": dict,
    "postCreateCommand": str,
    "customizations": dict,
}


def test_the_devcontainer_is_as_its_schema_asks():
    for name, value in DEVCONTAINER.items():
        assert isinstance(value, SCHEMA[name]), name
    needs = DEVCONTAINER["hostRequirements"]
    assert isinstance(needs["cpus"], int)
    for name in ("memory", "storage"):
        assert re.fullmatch(r"\d+(tb|gb|mb|kb)", needs[name])
    assert set(DEVCONTAINER["customizations"]) == {"vscode"}


def test_the_devcontainer_makes_the_user_whom_it_uses():
    dockerfile = text(f".devcontainer/{DEVCONTAINER['build']['dockerfile']}")
    assert re.search(rf"useradd .*\b{DEVCONTAINER['remoteUser']}$", dockerfile, re.MULTILINE)
    major, minor = map(int, re.match(r"FROM python:(\d+)\.(\d+)-", dockerfile).groups())
    assert (major, minor) >= (3, 11)


@pytest.mark.timeout(60)
def test_the_devcontainers_command_sets_up_a_bare_checkout(tmp_path):
    course = Checkout(tmp_path)
    done = subprocess.run(
        ["bash", "-c", DEVCONTAINER["postCreateCommand"]],
        cwd=course.root,
        env=course.env,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert course.left() == {".venv"}
    assert done.stdout.splitlines() == [
        f"{course.own_python} -m tools {command}" for command in ("setup", "doctor")
    ]


# --- Citation, changes, hooks, workflow ----------------------------------------------------------


def test_the_citation_has_what_its_format_asks_for():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert text("README.md").startswith(f"# {citation['title']}\n")


def test_the_changes_name_every_edition_and_every_notebook():
    changes = text("CHANGELOG.md")
    editions = re.findall(r"^## (\w+) edition", changes, re.MULTILINE)
    assert editions == ["Fourth", "Third", "Second", "First"]
    named = set(re.findall(r"\b(\d\d) (?!November)[A-Z]", changes)) | {f"{n:02}" for n in range(8)}
    assert named == {path.name[:2] for path in paths.NOTEBOOKS.glob("*.ipynb")}


def test_the_hooks_run_what_ci_runs_in_its_versions():
    (local,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert local["repo"] == "local"  # no second place to fetch from
    check, form, rules = local["hooks"]
    for hook in (check, form):
        assert hook["additional_dependencies"] == [
            f"ruff=={pinned('requirements-tests.txt')['ruff']}"
        ]
        assert hook["types_or"] == ["python", "pyi", "jupyter"]
    assert [hook["entry"].split()[:2] for hook in (check, form)] == [
        ["ruff", "check"],
        ["ruff", "format"],
    ]
    program, command, *files = rules["entry"].split()
    assert (program, command) == ("./run.sh", "test")
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_the_workflow_builds_the_site_and_publishes_what_was_built():
    workflow = yaml.safe_load(text(".github/workflows/pages.yml"))
    assert workflow[True]["push"] == {"branches": ["main"]}  # YAML 1.1 reads `on` as true
    assert workflow["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert {"uses", "run"} & set(step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))
    commands = [step["run"] for step in job["steps"] if "run" in step]
    for file in re.findall(r"-[cr] (\S+)", commands[0]):
        assert (ROOT / file).exists()
    assert commands[1] == "COURSE_PYTHON=python ./run.sh site"
    options = {step.get("uses", "").split("@")[0]: step.get("with") for step in job["steps"]}
    assert options["actions/setup-python"] == {"python-version": "3.11"}
    assert options["actions/upload-pages-artifact"] == {"path": "build/site"}
    assert job["environment"]["url"] == "${{ steps.deployment.outputs.page_url }}"
    assert [s["id"] for s in job["steps"] if "deploy-pages" in s.get("uses", "")] == ["deployment"]


def test_once_a_week_all_runs_of_which_the_suite_has_a_sample():
    workflow = yaml.safe_load(text(".github/workflows/weekly.yml"))
    (job,) = workflow["jobs"].values()
    session = text("tests/session.py")
    options = set(re.findall(r'"(--(?:all|run)-\w+)"', session))
    calls = [call.split() for call in job["strategy"]["matrix"]["tests"]]
    assert {option for _, option in calls} == options
    assert all((ROOT / folder).exists() for folder, _ in calls)
    assert any(
        "CI=true ./run.sh test ${{ matrix.tests }}" in s.get("run", "") for s in job["steps"]
    )


# --- What AI assistants are told -----------------------------------------------------------------


def test_what_assistants_are_told_not_to_open_is_where_the_answers_are():
    told = text("AGENTS.md")
    for name in re.findall(r"`((?:course_utils|lessons|tests)/[\w/]*)`", told):
        assert (ROOT / name).is_dir(), name
    hidden = {"lessons/", "course_utils/checking/", "--ours"}
    for place in hidden | {"%solution", "NotImplementedError"}:
        assert f"`{place}`" in told, place


@pytest.mark.parametrize("file", ["AGENTS.md", "CHANGELOG.md"])
def test_commands_that_are_named_exist(file):
    for line in re.findall(r"`\./run\.sh ([^`]+)`", text(file)):
        words = line.split()
        if words == ["grade"]:
            words.append("file.ipynb")
        assert parser().parse_known_args(words)[0].command == words[0]
