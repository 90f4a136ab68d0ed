"""What can go wrong in the setup: it is said in one sentence, and nothing half-made stays."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.unit.run_sh.checkout import (
    FAKE_PYTHON,
    OLD_PYTHON,
    Checkout,
    is_one_sentence,
    write_program,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(60)


def assert_nothing_is_left(course: Checkout) -> None:
    assert not course.left()
    assert not list(course.tmp.iterdir())


@pytest.mark.parametrize(("program", "says"), [(OLD_PYTHON, "3.9.2"), (None, "none on PATH")])
def test_no_python_that_is_new_enough(course, program, says):
    (course.bin / "python3").unlink()
    if program:
        write_program(course.bin / "python3", program)
    for command in ("list", "demo"):
        status, _, err = course.run(command)
        assert status == 2
        assert is_one_sentence(err)
        assert says in err
        assert "3.11 or newer" in err
    assert_nothing_is_left(course)


@pytest.mark.parametrize("newer", ["python3.12", "python3.14"])
def test_a_newer_python_is_found_behind_one_that_is_too_old(course, newer):
    write_program(course.bin / newer, FAKE_PYTHON)
    write_program(course.bin / "python3", OLD_PYTHON)
    assert course.run("list")[1].startswith(f"{course.bin}/{newer}")


def test_too_little_disk_is_seen_before_anything_is_made(course):
    (course.bin / "df").unlink()
    header = "Filesystem 1024-blocks Used Available Capacity Mounted on"
    write_program(
        course.bin / "df", f"#!/usr/bin/env bash\necho '{header}\n/dev/x 9 9 2097152 9% /'\n"
    )
    status, _, err = course.run("setup")
    assert status == 1
    assert is_one_sentence(err)
    assert "has only 2 GB free" in err
    assert not course.calls()
    assert_nothing_is_left(course)


@pytest.mark.parametrize(
    "says", ["OSError: [Errno 28] No space left on device", "WARNING: Connection timed out"]
)
def test_a_pip_that_fails_is_heard_and_nothing_stays(course, says):
    status, out, err = course.run("setup", FAKE_PIP=f"echo '{says}'; exit 1")
    *_, words, sentence = err.splitlines()
    assert (status, out, words) == (1, "", says)
    assert is_one_sentence(sentence)
    assert_nothing_is_left(course)


def test_a_python_without_venv_is_told_what_to_install(course):
    write_program(course.bin / "python3", FAKE_PYTHON.replace('echo venv >>"$CALLS"', "exit 1"))
    status, _, err = course.run("setup")
    assert status == 1
    assert "python3-venv" in err
    assert not course.left()


def test_an_update_that_fails_is_taken_up_by_the_next_call(course):
    course.run("setup")
    (course.root / "requirements.txt").write_text("# changed\n")
    status, _, err = course.run("setup", FAKE_PIP="exit 1")
    assert status == 1
    assert is_one_sentence(err.splitlines()[-1])
    (course.root / "requirements.txt").write_text("six==1.17.0\n")  # as it was at first
    assert "Updating" in course.run("setup")[2]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_setup_leaves_nothing_behind(course, number, status):
    child = course.folder / "child"
    slow = f'echo $$ >"{child}.new"; mv "{child}.new" "{child}"; sleep 50'
    process = course.start("setup", FAKE_PIP=slow)
    assert wait_for(child.exists)
    os.killpg(process.pid, number)  # as the terminal does
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert is_one_sentence(err.splitlines()[-1])
    assert "interrupted" in err
    assert_nothing_is_left(course)
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


def test_a_checkout_that_cannot_be_written_names_the_way_out(course):
    course.root.chmod(0o555)
    nobody = {}
    if os.geteuid() == 0:  # whom no mode keeps from writing
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        if not can_enter(course.root, nobody):
            pytest.skip("another user cannot enter pytest's folder")
    done = subprocess.run(
        [course.root / "run.sh", "setup"],
        env=course.env,
        capture_output=True,
        text=True,
        timeout=30,
        **nobody,
    )
    course.root.chmod(0o755)
    assert done.returncode == 2
    assert is_one_sentence(done.stderr.strip())
    assert "COURSE_PYTHON" in done.stderr
    assert not course.left()


def can_enter(folder: Path, user: dict) -> bool:
    """Open the folders made for this test session, and see whether `user` gets in."""
    session = Path(tempfile.gettempdir()).parent  # tests/session.py made it
    for parent in folder.parents:
        if session in [parent, *parent.parents]:
            parent.chmod(0o755)
    return subprocess.run(["test", "-x", folder], **user).returncode == 0
