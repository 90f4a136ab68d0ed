"""The environment that run.sh makes, and when it makes it anew."""

import os
import signal
from pathlib import Path

import pytest

from tests.unit.run_sh.checkout import (
    FAKE_PYTHON,
    write_program,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(60)


def test_a_second_call_installs_nothing_and_says_nothing(course):
    course.run("setup")
    before = course.calls()
    assert course.run("demo", "ring")[2] == ""
    assert course.calls() == before
    assert course.left() == {".venv"}
    assert not list(course.tmp.iterdir())


@pytest.mark.parametrize("file", ["requirements.txt", "pyproject.toml"])
def test_changed_requirements_update_the_environment_that_is_there(course, file):
    course.run("setup")
    (course.root / file).write_text("# changed\n")
    status, _, err = course.run("setup")
    assert status == 0
    assert "Updating" in err
    assert course.calls() == ["venv", "pip", "pip", "pip", "pip"]


@pytest.mark.parametrize("python_is_gone", [False, True], ids=["moved", "without its Python"])
def test_an_environment_that_works_no_more_is_made_anew(course, python_is_gone):
    course.run("setup")
    if python_is_gone:
        Path(course.own_python).unlink()
    else:
        course.root = course.root.rename(course.folder / "moved here")
    status, _, err = course.run("setup")
    assert status == 0
    assert "another folder" in err
    assert course.calls() == ["venv", "pip", "pip"] * 2


def test_an_environment_made_by_hand_is_completed_and_not_removed(course):
    write_program(Path(course.own_python), FAKE_PYTHON)
    (course.root / ".venv/mine").touch()
    assert course.run("setup")[0] == 0
    assert course.calls() == ["pip", "pip"]
    assert (course.root / ".venv/mine").exists()


def test_two_at_once_make_one_environment(course):
    both = [course.start("setup", FAKE_PIP="sleep 0.5") for _ in range(2)]
    said = [process.communicate(timeout=50)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert course.calls() == ["venv", "pip", "pip"]
    assert sum("Waiting for the run.sh" in text for text in said) == 1
    assert course.left() == {".venv"}


def test_a_killed_setup_holds_nobody_up_once_its_pip_has_ended(course):
    pip = course.folder / "pip"
    slow = f'echo $$ >"{pip}.new"; mv "{pip}.new" "{pip}"; sleep 50'
    killed = course.start("setup", FAKE_PIP=slow)
    assert wait_for(pip.exists)
    killed.kill()
    killed.wait()
    second = course.start("setup")
    assert "Waiting for the run.sh" in second.stderr.readline()
    os.killpg(int(pip.read_text()), signal.SIGKILL)
    second.communicate(timeout=50)
    assert second.returncode == 0
    killed.communicate()
    assert course.left() == {".venv"}
    assert not Path(f"{course.root}/.venv/tmp").exists()


def test_a_demo_does_not_hold_the_lock_under_which_its_environment_was_made(course):
    started = course.folder / "started"
    runs = f'[ "$3" != demo ] || {{ touch "{started}"; exec sleep 50; }}\n        echo "$0 $*"'
    write_program(course.bin / "python3", FAKE_PYTHON.replace('echo "$0 $*"', runs))
    demo = course.start("demo", "ring")
    assert wait_for(started.exists)
    (course.root / "requirements.txt").write_text("# changed\n")
    status, _, err = course.run("setup")
    demo.kill()
    demo.communicate()
    assert status == 0
    assert "Waiting" not in err
