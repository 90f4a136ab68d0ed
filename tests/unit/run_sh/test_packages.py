"""Who installs the packages, uv or pip, and which of pip's settings both of them heed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.run_sh.checkout import Checkout, is_one_sentence, write_program
from tests.unit.run_sh.wheels import BACKEND, BUILD, wheel

pytestmark = pytest.mark.timeout(120)

# Notes its arguments, and the variables that tell it where packages come from.
UV = """#!/usr/bin/env bash
echo uv >>"$CALLS"
echo "$*" >>"$CALLS.uv"
echo "$SSL_CERT_FILE $HTTPS_PROXY $UV_HTTP_TIMEOUT $UV_INDEX_STRATEGY" >>"$CALLS.uv.env"
[ -z "${UV_SAYS:-}" ] || { echo "$UV_SAYS" >&2; exit 2; }
"""
NOTE_PIP = 'echo "$* ${!PIP_@} ${PIP_FIND_LINKS:-}" >>"$CALLS.pip"'


@pytest.fixture
def with_uv(course):
    """A checkout whose pip finds a uv, and which has a driver: no build for CPUs is tried."""
    write_program(course.bin / "nvidia-smi", "")
    course.env |= {"FAKE_UV": UV, "FAKE_PIP": NOTE_PIP}
    return course


def noted(course: Checkout, what: str) -> list[str]:
    return Path(f"{course.calls_file}.{what}").read_text().splitlines()


def test_uv_comes_by_pip_and_installs_everything(with_uv):
    status, _, err = with_uv.run("setup")
    assert status == 0
    assert len(err.splitlines()) == 2  # what it does, and that it is done
    assert with_uv.calls() == ["venv", "get-uv", "uv", "uv"]
    lists, course = noted(with_uv, "uv")
    into = f"pip install -q --python {with_uv.own_python} --no-progress"
    assert lists == f"{into} -r requirements.txt"
    assert course == f"{into} --no-deps --no-build-isolation -e ."


def test_an_update_uses_the_uv_that_is_there(with_uv):
    with_uv.run("setup")
    (with_uv.root / "requirements.txt").write_text("six==1.18.0\n")
    with_uv.run("setup")
    assert with_uv.calls() == ["venv", "get-uv", "uv", "uv", "uv", "uv"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "error: Failed to fetch: `http://mirror/simple/six/`\n  Caused by: 401",
            "Failed to fetch",
        ),
        ("  \u00d7 No solution found:\n  ╰─▶ Because there is no six", "No solution found"),
        ("warning: no hard links\nerror: Permission denied (os error 13)", "Permission denied"),
    ],
)
def test_where_uv_cannot_pip_does_and_a_sentence_says_why(with_uv, said, reason):
    status, _, err = with_uv.run("setup", UV_SAYS=said)
    assert status == 0
    (sentence,) = [line for line in err.splitlines() if "uv cannot" in line]
    assert f"uv cannot install this ({reason}" in sentence
    assert "pip does it" in sentence
    assert with_uv.calls() == ["venv", "get-uv", "uv", "pip", "pip"]  # uv is not asked again
    before = with_uv.calls()
    assert with_uv.run("demo", "ring")[2] == ""
    assert with_uv.calls() == before


def test_where_pip_finds_no_uv_it_installs_without_a_word_about_it(with_uv):
    status, _, err = with_uv.run("setup", FAKE_UV="")
    assert (status, "uv cannot" in err, "ERROR" in err) == (0, False, False)
    assert with_uv.calls() == ["venv", "pip", "pip"]


def test_where_both_fail_pip_is_heard_and_its_settings_are_named(with_uv):
    status, _, err = with_uv.run(
        "setup",
        UV_SAYS="error: no route",
        FAKE_PIP="echo 'ERROR: no route to host'; exit 1",
        FAKE_CONFIG="echo \"global.index-url='http://mirror/simple'\"",
    )
    *_, words, settings, sentence = err.splitlines()
    assert (status, words) == (1, "ERROR: no route to host")
    assert "index-url" in settings
    assert is_one_sentence(sentence)
    assert not with_uv.left()


CONFIGURED = """
:env:.default-timeout='180'
:env:.find-links='/usb/wheels'
:env:.index-url=''
For variant 'global', will try loading '/etc/pip.conf'
global.cert='/etc/ca.pem'
global.extra-index-url='https://one/simple\\nfile:///two/simple'
global.find-links='/replaced'
global.index-url='https://mirror/simple'
global.proxy='http://proxy:3128'
install.trusted-host='mirror other:8080'
freeze.user='true'
"""


def test_uv_hears_pip_s_settings_in_its_own_words(with_uv):
    with_uv.run("setup", FAKE_CONFIG=f"cat <<'END'\n{CONFIGURED}\nEND")
    words = noted(with_uv, "uv")[0].split()
    assert sorted(words[words.index("--no-progress") + 1 : words.index("-r")]) == [
        "--allow-insecure-host=mirror",
        "--allow-insecure-host=other:8080",
        "--extra-index-url=file:///two/simple",
        "--extra-index-url=https://one/simple",
        "--find-links=/usb/wheels",
        "--index-url=https://mirror/simple",
    ]
    environment = "/etc/ca.pem http://proxy:3128 180 unsafe-best-match"
    assert noted(with_uv, "uv.env") == [environment] * 2


def test_pip_and_the_commands_hear_no_more_than_before(with_uv):
    with_uv.run(
        "setup",
        FAKE_UV="",
        FAKE_CONFIG=f"cat <<'END'\n{CONFIGURED}\nEND",
        PIP_FIND_LINKS="/usb/wheels",
        PIP_TARGET="/elsewhere",
        PIP_USER="1",
    )
    for line in noted(with_uv, "pip"):
        assert line.endswith("/usb/wheels")
        assert "PIP_INDEX_URL" in line
        assert not {"PIP_TARGET", "PIP_USER"} & set(line.split())


@pytest.mark.parametrize(("value", "heeded"), [("true", True), ("0", False)])
def test_without_an_index_uv_asks_none_either(with_uv, value, heeded):
    with_uv.run("setup", FAKE_CONFIG=f"echo \"global.no-index='{value}'\"")
    assert ("--no-index" in noted(with_uv, "uv")[0].split()) == heeded


SHAPES = """
global.constraint='c.txt'
:env:.user='0'
:env:.config-file='/etc/pip.conf'
"""


def test_a_setting_that_is_not_heeded_is_named(with_uv):
    _, _, err = with_uv.run("setup", FAKE_CONFIG=f"cat <<'END'\n{SHAPES}\nEND")
    (sentence,) = [line for line in err.splitlines() if "ignored" in line]
    assert "constraint" in sentence
    assert not {"user", "config-file"} & set(re.split(r"[ ,.:]+", sentence))


# --- With a real pip -----------------------------------------------------------------------------

ELSEWHERE = {"USER": "1", "TARGET": "elsewhere", "PREFIX": "elsewhere", "ROOT": "elsewhere"}
NOTHING = {"DRY_RUN": "1", "REQUIRE_HASHES": "1", "CONSTRAINT": "/no/file", "NO_BINARY": ":all:"}
ODD = {"PYTHON": "/no/python", "QUIET": "3", "NO_SUCH_OPTION": "1", "REQUIRE_VIRTUALENV": "1"}
TOLD = {
    "variables": {f"PIP_{name}": value for name, value in (ELSEWHERE | NOTHING | ODD).items()},
    "a file": "[install]\nuser = true\n[global]\ntarget = elsewhere\ndry-run = true\nquiet = 2\n",
    "what another path holds": {"PYTHONPATH": "satisfied"},
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with the wheel of the only package that is required."""
    folder = tmp_path_factory.mktemp("wheels")
    wheel(folder, "six", "1.17.0")
    return folder


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_whatever_pip_is_told_the_course_goes_into_its_own_environment(tmp_path, packages, told):
    course = Checkout(tmp_path)
    for name in ("nvidia-smi", "python3"):
        write_program(
            course.bin / name, f'#!/usr/bin/env bash\nexec {shlex.quote(sys.executable)} "$@"\n'
        )
    (course.root / "pyproject.toml").write_text(BUILD)
    (course.root / "backend.py").write_text(BACKEND)
    wheel(course.root, "course", "1")
    wheel(course.root, "six", "1.17.0")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "HOME": str(tmp_path)}
    if isinstance(told, str):
        config = tmp_path / ".config/pip/pip.conf"
        config.parent.mkdir(parents=True)
        config.write_text(told)
    else:
        env |= told
    if "PYTHONPATH" in env:
        env["PYTHONPATH"] = str(tmp_path / "satisfied")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        wheels = list(packages.glob("six*.whl"))
        subprocess.run([*pip, "--target", env["PYTHONPATH"], *wheels], check=True, timeout=60)
    _, _, err = course.run("execute", **env)  # in the end there is no torch
    sites = Path(course.own_python).parents[1].glob("lib/python*/site-packages/*.dist-info")
    assert {"six-1.17.0.dist-info", "course-1.dist-info"} <= {path.name for path in sites}, err
    assert not (course.root / "elsewhere").exists()
