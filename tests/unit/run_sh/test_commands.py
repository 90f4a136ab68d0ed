"""Which command run.sh starts, and with which Python."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.run_sh.checkout import (
    FAKE_PYTHON,
    OLD_PYTHON,
    ROOT,
    is_one_sentence,
    write_program,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("command", ["list", "doctor", "clean", "extract", "no-such-command"])
def test_a_command_that_needs_no_torch_runs_on_a_bare_python(course, command):
    status, out, err = course.run(command, "an argument", STATUS="2")
    assert (status, err) == (2, "")
    assert out == f"{course.bin}/python3 -m tools {command} an argument"
    assert not course.left()


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        ((), "-m tools demo transformer"),
        (("demo", "ring", "-n", "3"), "-m tools demo ring -n 3"),
        (("bench", "launch"), "-m tools bench launch"),
        (("execute", "a b.ipynb"), "-P -m tools execute a b.ipynb"),
        (("grade", "a b.ipynb"), "-P -m tools grade a b.ipynb"),
        (("test", "tests/unit", "-x"), "-m pytest tests/unit -x"),
        (
            ("lab", "--no-browser"),
            "-m jupyterlab --ServerApp.ip=127.0.0.1 --no-browser --notebook-dir=/my copies",
        ),
        (
            ("lab", "--notebook-dir=notebooks"),
            "-m jupyterlab --ServerApp.ip=127.0.0.1 --notebook-dir=notebooks",
        ),
    ],
)
def test_a_command_that_needs_torch_makes_the_environment_first(course, arguments, starts):
    status, out, _ = course.run(*arguments, STATUS="7")
    assert (status, out) == (7, f"{course.own_python} {starts}")
    assert course.calls() == ["venv", "pip", "pip", *["pip"] * (arguments[:1] == ("test",))]


@pytest.mark.parametrize("arguments", [("demo", "typo"), ("bench", "--typo"), ("setup", "--fast")])
def test_a_slip_ends_a_call_before_anything_is_installed(course, arguments):
    assert course.run(*arguments, CHECK="2")[0] == 2
    assert not course.calls()
    assert not course.left()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["demo", "typo"], "there is no demo 'typo'; choose one of hello, "),
        (["demo", "ring", "-n", "0"], "from 1 to 64"),
        (["demo"], "./run.sh list"),
        (["no-such-command"], "invalid choice: 'no-such-command'"),
    ],
)
def test_the_course_finds_a_slip_without_a_package_installed(course, arguments, says):
    course.use_bare_python()
    status, out, err = course.run(*arguments)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err
    assert not course.left()


@pytest.mark.parametrize("command", ["list", "--help", "extract", "clean"])
def test_the_course_needs_no_package_for_what_starts_no_rank(course, command):
    course.use_bare_python()
    status, out, err = course.run(command, COURSE_HOME=str(course.folder / "home"))
    assert (status, err) == (0, "")
    assert out


@pytest.mark.parametrize("more", [(), ("--no-browser",)])
def test_jupyterlab_as_root_is_refused_with_the_command_that_works(course, more):
    write_program(course.bin / "id", "echo 0")
    status, out, err = course.run("lab", *more)
    assert (status, out) == (2, "")
    assert is_one_sentence(err)
    assert "./run.sh lab --allow-root" in err
    assert not course.left()
    assert " ".join(["--allow-root", *more]) in course.run("lab", "--allow-root", *more)[1]


def test_jupyterlab_does_not_start_without_the_student_s_copies(course):
    status, out, _ = course.run("lab", COPIED="2", STATUS="7")
    assert (status, out) == (2, "")


def test_jupyterlab_is_told_of_kernels_with_the_magics_and_of_the_first_notebook(course):
    say = 'case $* in "-m jupyterlab"*) echo "$JUPYTER_PATH $JUPYTER_CONFIG_PATH"; exit;; esac'
    write_program(course.bin / "python3", f"#!/usr/bin/env bash\n{say}\nexit 0\n")
    _, out, _ = course.run("lab", COURSE_PYTHON="python3", JUPYTER_PATH="/own")
    folder = f"{course.root}/tools/jupyter"
    assert out == f"{folder}:/own {folder}"
    settings = json.loads((ROOT / "tools/jupyter/jupyter_lab_config.json").read_text())
    first = settings["LabApp"]["default_url"].rpartition("/")[2]
    assert (ROOT / "notebooks" / first).exists()


def test_what_only_tests_need_is_installed_for_them_once_and_into_our_own_environment(course):
    notes = 'echo "${*##* }" >>"$CALLS.lists"'
    lists = Path(f"{course.calls_file}.lists")
    course.run("setup", FAKE_PIP=notes)
    assert "requirements-tests.txt" not in lists.read_text()
    _, _, err = course.run("test", FAKE_PIP=notes)
    assert "what the tests need" in err
    assert lists.read_text().endswith("-r requirements-tests.txt\n")
    before = course.calls()
    assert course.run("test", FAKE_PIP=notes)[2] == ""
    assert course.run("test", COURSE_PYTHON="python3")[2] == ""
    assert course.calls() == before
    (course.root / "requirements-tests.txt").write_text("pytest-xdist==3.9.0\n")
    assert course.run("test", FAKE_PIP="exit 1")[0] == 1
    assert course.run("demo")[0] == 0  # a student's environment is complete
    course.run("test")
    assert len(course.calls()) == len(before) + 2


@pytest.mark.parametrize("home", ["/nonexistent", None])
def test_jupyterlab_gets_a_home_where_the_user_has_none_that_can_be_written(course, home):
    tells = FAKE_PYTHON.replace('echo "$0 $*"', 'echo "$HOME"')
    write_program(course.bin / "python3", tells)
    own = course.folder / "own"
    own.mkdir()
    _, out, _ = course.run("lab", HOME=home or str(own), COPIES=f"{course.folder}/there/my")
    assert out == (f"{course.folder}/there" if home else str(own))


def test_all_tests_are_run_by_the_tests_themselves(course):
    options = {"COURSE_PYTHON": "python3", "HAS": "torch pytest xdist"}
    status, out, _ = course.run("test", STATUS="1", **options)
    assert (status, out.rpartition(" -m ")[2]) == (1, "tests")


def test_in_ci_what_chosen_tests_need_besides_is_installed_first(course):
    _, out, _ = course.run("test", "tests/unit", CI="true")
    first, second = out.splitlines()
    assert first == f"{course.own_python} -m tests.ci"
    assert second.startswith(course.own_python)
    status, out, _ = course.run("test", "tests/unit", CI="true", STATUS="2")
    assert (status, out) == (2, first)


def test_in_ci_all_tests_install_what_they_need_themselves(course):
    _, out, _ = course.run("test", CI="true")
    assert out == f"{course.own_python} -m tests"


@pytest.mark.parametrize("words", ["help", "--help", "-h", "help demo", "demo --help", "demo -h"])
def test_help_in_each_of_its_spellings(course, words):
    _, out, _ = course.run(*words.split())
    assert out.endswith("tools -h" if words == "-h" else "tools --help")
    assert not course.left()


def test_it_runs_through_a_relative_symlink_from_elsewhere(course):
    (course.folder / "links").mkdir()
    (course.folder / "links/one").symlink_to("../the course/run.sh")
    (course.folder / "two").symlink_to("links/one")
    done = subprocess.run(
        [course.folder / "two"], env=course.env, cwd="/", capture_output=True, text=True, timeout=30
    )
    assert done.stdout.startswith(course.own_python)


def test_a_signal_reaches_what_was_started(course):
    waits = '#!/usr/bin/env bash\n[ "$1" = -c ] || { touch "$CALLS"; exec sleep 50; }\n'
    write_program(course.bin / "python3", waits)
    process = course.start("list")
    assert wait_for(course.calls_file.exists)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_is_used_with_the_course_of_this_checkout(course, variable):
    tells = FAKE_PYTHON.replace('echo "$0 $*"', 'echo "$PYTHONPATH $0 $*"')
    python = write_program(course.folder / "their env/bin/python", tells)
    env = {variable: str(python.parents[1]), "PYTHONPATH": "/theirs"}
    _, out, _ = course.run(HAS="torch course_utils psutil rich numpy", **env)
    assert out == f"{course.root}:/theirs {python} -m tools demo transformer"
    assert not course.left()


def test_an_active_environment_without_the_course_is_not_used(course):
    python = write_program(course.folder / "their env/bin/python", FAKE_PYTHON)
    _, out, _ = course.run(VIRTUAL_ENV=str(python.parents[1]), HAS="torch psutil rich numpy")
    assert out.startswith(course.own_python)


def test_our_own_environment_is_kept_up_to_date_when_it_is_active(course):
    active = {"VIRTUAL_ENV": f"{course.root}/.venv", "HAS": "pip torch course_utils"}
    course.run("setup", **active)
    (course.root / "requirements.txt").write_text("# changed\n")
    assert "Updating" in course.run("setup", **active)[2]


@pytest.mark.parametrize("spelling", ["/absolute", "theirs/python", "python-of-theirs"])
def test_course_python_is_used_as_it_is(course, spelling):
    folder = course.bin if spelling == "python-of-theirs" else course.folder / "theirs"
    name = "python-of-theirs" if spelling == "python-of-theirs" else "python"
    python = write_program(folder / name, FAKE_PYTHON)
    chosen = str(python) if spelling == "/absolute" else spelling
    _, out, err = course.run(COURSE_PYTHON=chosen, HAS="torch psutil rich numpy")
    assert (out, err) == (f"{python} -m tools demo transformer", "")
    assert not course.left()


def test_course_python_finds_the_course_that_is_not_installed_there(course):
    (course.root / "tools").mkdir()
    (course.root / "tools/__main__.py").write_text("import os; print(os.getenv('PYTHONPATH'))")
    _, out, _ = course.run("list", COURSE_PYTHON=sys.executable, PYTHONPATH="/theirs")
    assert out == f"{course.root}:/theirs"


@pytest.mark.parametrize(
    ("program", "says"),
    [(None, "No such file"), (OLD_PYTHON, "3.9.2"), (FAKE_PYTHON, "no torch")],
    ids=["missing", "too old", "without torch"],
)
def test_a_course_python_that_will_not_do_is_refused(course, program, says):
    if program:
        write_program(course.folder / "theirs", program)
    status, out, err = course.run(COURSE_PYTHON=f"{course.folder}/theirs", HAS="pip")
    assert (status, out) == (2, "")
    assert is_one_sentence(err)
    assert says in err
    assert not course.left()


@pytest.mark.parametrize("command", ["execute", "grade"])
def test_a_command_that_starts_elsewhere_still_finds_the_course(course, command):
    _, out, _ = course.run(command, "07.ipynb", SHOW="PYTHONPATH")
    assert out.splitlines()[-1] == str(course.root)


def test_notebooks_to_execute_are_named_from_where_one_is(course):
    (course.root / "tools").mkdir()
    (course.root / "tools/__main__.py").write_text("import os; print(os.getcwd())")
    (course.folder / "tools.py").write_text("print('not the course')")
    _, out, _ = course.run("execute", "07.ipynb", COURSE_PYTHON=sys.executable)
    assert out == str(course.folder)


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("lab", "jupyterlab"),
        ("test", "pytest"),
        ("demo", "torch torchvision"),
        ("demo", "psutil rich numpy"),
        ("execute", "nbclient"),
        ("grade", "psutil"),
        ("bench", "psutil"),
    ],
)
def test_what_their_python_lacks_for_a_command_is_named(course, command, needs):
    has = "" if needs.startswith("torch") else "torch"
    status, _, err = course.run(command, COURSE_PYTHON=f"{course.bin}/python3", HAS=has)
    assert status == 2
    assert is_one_sentence(err)
    assert f"pip install {needs}" in err
