"""Which build of torch run.sh installs: for CPUs, through uv, or the usual one, with CUDA."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.unit.run_sh.checkout import Checkout, is_one_sentence, write_program
from tests.unit.run_sh.wheels import BACKEND, BUILD, uv_wheel, wheel

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform == "darwin", reason="torch for macOS has no CUDA libraries"),
]
LIST = """\
cuda-toolkit==13.2.2; sys_platform == "linux"
nvidia-cublas==13.4.1.3; sys_platform == "linux"
six==1.17.0
torch==2.15.0
torchvision==0.29.2
triton==3.9.0; sys_platform == "linux"
"""
PAIR = "torch==2.15.0 torchvision==0.29.2"
# As uv does, it leaves torch's folder behind, and takes a list of requirements.
UV = """#!/usr/bin/env bash
echo uv >>"$CALLS"
echo "$*" >>"$CALLS.uv"
case "$*" in
    *--torch-backend*)
        [ "${UV_STATUS:-0}" = 0 ] || { echo "error: no route" >&2; exit "$UV_STATUS"; }
        build=${FAKE_BUILD-+cpu}
        mkdir -p "${0%/bin/uv}/lib/python3.12/site-packages/torch-2.15.0$build.dist-info" ;;
    *requirements.txt) cat "${!#}" >"$CALLS.list" ;;
esac
"""
CALLS = ["venv", "get-uv", "uv", "uv", "uv"]  # for the pair, for the list, for the course
KEEP_LIST = 'case "$*" in *requirements.txt) cat "${!#}" >"$CALLS.list" ;; esac'
NO_DRIVER = pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver")


@pytest.fixture
def linux(course):
    """A checkout on Linux whose pip finds a uv."""
    (course.root / "requirements.txt").write_text(LIST)
    course.env["FAKE_UV"] = UV
    return course


def installed(course: Checkout) -> list[str]:
    """The packages of the list that was installed."""
    lines = Path(f"{course.calls_file}.list").read_text().splitlines()
    return [line.partition("==")[0] for line in lines]


def test_the_pair_is_installed_first_and_then_the_list_without_what_only_cuda_needs(linux):
    status, _, err = linux.run("setup", COURSE_TORCH="cpu")
    assert status == 0
    assert "about 2 GB" in err
    assert linux.calls() == CALLS
    pair = Path(f"{linux.calls_file}.uv").read_text().splitlines()[0]
    assert pair.endswith(f" --no-deps --torch-backend cpu {PAIR}")
    assert installed(linux) == ["six", "torch", "torchvision"]
    for again in ({"COURSE_TORCH": "cpu"}, {}):
        assert linux.run("demo", "ring", **again)[2] == ""
    assert linux.calls() == CALLS


@NO_DRIVER
def test_unasked_it_is_installed_where_there_is_no_driver(linux):
    linux.run("setup")
    assert linux.calls() == CALLS


def test_unasked_the_usual_one_is_installed_where_a_driver_is(linux):
    write_program(linux.bin / "nvidia-smi", "")
    status, _, err = linux.run("setup")
    assert status == 0
    assert "about 6 GB" in err
    assert linux.calls() == ["venv", "get-uv", "uv", "uv"]
    assert installed(linux)[:2] == ["cuda-toolkit", "nvidia-cublas"]


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"UV_STATUS": "2"}, "uv does not reach it"),
        ({"FAKE_BUILD": ""}, "uv does not reach it"),  # uv took the usual one from a mirror
        ({"FAKE_UV": "", "FAKE_PIP": KEEP_LIST}, "pip does not get uv"),
    ],
)
def test_where_it_cannot_be_had_one_sentence_says_so_once(linux, env, why):
    status, _, err = linux.run("setup", COURSE_TORCH="cpu", **env)
    assert status == 0
    (said,) = [line for line in err.splitlines() if "for CPUs" in line]
    assert why in said
    assert "no route" not in err
    assert len(installed(linux)) == 6
    before = linux.calls()
    assert linux.run("setup", COURSE_TORCH="cpu")[2] == ""
    assert linux.calls() == before


def test_the_usual_one_needs_its_room_too(linux):
    (linux.bin / "df").unlink()
    write_program(linux.bin / "df", "echo head; echo /dev/x 9 9 5242880 9% /")
    assert linux.run("setup", COURSE_TORCH="cpu")[0] == 0
    status, _, err = linux.run("setup", COURSE_TORCH="cuda")
    assert status == 1
    assert "needs 9 GB" in err
    status, _, err = linux.run("setup", COURSE_TORCH="cpu", UV_STATUS="2")
    assert status == 1
    assert is_one_sentence(err.splitlines()[-1])
    assert "needs 9 GB" in err
    assert not linux.left()


def test_an_update_keeps_the_build(linux):
    linux.run("setup", COURSE_TORCH="cpu")
    (linux.root / "requirements.txt").write_text(LIST + "\n")
    assert "Updating" in linux.run("setup")[2]
    assert linux.calls() == [*CALLS, "uv", "uv", "uv"]
    write_program(linux.bin / "nvidia-smi", "")  # a driver that came later changes nothing
    assert linux.run("setup")[2] == ""


def test_an_update_that_fails_keeps_the_build_too(linux):
    linux.run("setup", COURSE_TORCH="cpu")
    (linux.root / "requirements.txt").write_text(LIST + "\n")
    uv = Path(linux.own_python).parent / "uv"
    works = uv.read_text()
    uv.write_text("exit 1\n")
    assert linux.run("setup", COURSE_TORCH="cpu", FAKE_PIP="exit 1")[0] == 1
    uv.write_text(works)
    assert "Updating" in linux.run("setup", COURSE_TORCH="cpu")[2]
    assert linux.calls().count("venv") == 1


def test_another_build_makes_the_environment_anew(linux):
    linux.run("setup", COURSE_TORCH="cpu")
    status, _, err = linux.run("setup", COURSE_TORCH="cuda")
    assert status == 0
    assert "for another COURSE_TORCH" in err
    assert linux.calls() == [*CALLS, "venv", "get-uv", "uv", "uv"]
    assert len(installed(linux)) == 6


def test_a_build_that_is_not_known_is_refused(linux):
    status, _, err = linux.run("setup", COURSE_TORCH="tpu")
    assert status == 2
    assert is_one_sentence(err)
    assert "neither cpu nor cuda" in err
    assert not linux.left()


# --- With a real pip and a small index of stand-in wheels ----------------------------------------

# Takes the pair from the folder of builds for CPUs, and leaves the rest to pip.
UV_OF_WHEELS = """#!/usr/bin/env bash
case "$*" in *--torch-backend*) ;; *) exit 2 ;; esac
export PIP_FIND_LINKS={folder}
exec "$5" -m pip install -q --no-deps "${{@: -2}}"
"""


@pytest.mark.timeout(240)
def test_pip_accepts_the_pair_and_brings_no_library_of_cuda(tmp_path):
    usual, cpu = tmp_path / "usual", tmp_path / "cpu"
    for folder in (usual, cpu):
        folder.mkdir()
    for line in LIST.splitlines():
        name, _, version = line.partition(";")[0].partition("==")
        needs = ["nvidia-cublas==13.4.1.3", "triton==3.9.0"] if name == "torch" else []
        wheel(usual, name, version, *needs)
    wheel(cpu, "torch", "2.15.0+cpu")
    wheel(cpu, "torchvision", "0.29.2+cpu", "torch==2.15.0")
    course = Checkout(tmp_path)
    (course.root / "requirements.txt").write_text(LIST)
    (course.root / "pyproject.toml").write_text(BUILD)
    (course.root / "backend.py").write_text(BACKEND)
    wheel(course.root, "course", "1")
    call = f'exec {shlex.quote(sys.executable)} "$@"'
    write_program(course.bin / "python3", f"#!/usr/bin/env bash\n{call}\n")
    uv_wheel(usual, UV_OF_WHEELS.format(folder=shlex.quote(str(cpu))))
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(usual), "COURSE_TORCH": "cpu"}
    setup = course.start("execute", **pip)  # in the end it fails: no course is installed
    said = setup.communicate(timeout=200)[1]
    sites = Path(course.own_python).parents[1].glob("lib/python*/site-packages/*.dist-info")
    found = {path.name.removesuffix(".dist-info") for path in sites}
    known = {name for name in found if name.startswith(("pip-", "setuptools-", "uv-"))}
    assert found - known == {
        "course-1",
        "six-1.17.0",
        "torch-2.15.0+cpu",
        "torchvision-0.29.2+cpu",
    }, said
