"""The templates for Gradescope and GitHub Classroom, in places that look like theirs."""

import os
import shlex
import subprocess

import pytest
import yaml

from course_utils import paths
from course_utils.exercises import find
from tests.unit.run_sh.checkout import write_program
from tools.__main__ import parser

TEMPLATES = paths.ROOT / "docs" / "templates"
RUN = '#!/usr/bin/env bash\necho "$COURSE_TORCH|$PWD|$*" >>"$CALLS"\nexit "${STATUS:-0}"\n'
PYTHON = '#!/usr/bin/env bash\nmkdir -p "$3/bin" && cp "$(dirname "$0")/apt-get" "$3/bin/python"\n'


@pytest.fixture
def container(tmp_path):
    """Gradescope's folders, with a run.sh that notes how it is called."""
    write_program(tmp_path / "source" / "course" / "run.sh", RUN)
    write_program(tmp_path / "bin" / "apt-get", RUN)
    write_program(tmp_path / "bin" / "python3", PYTHON)  # makes an environment
    for name in ("submission", "results"):
        (tmp_path / name).mkdir()
    return tmp_path


def call(container, script: str, status: int = 0) -> tuple[int, list[str]]:
    """Its exit status, and what it called."""
    own = {
        "AUTOGRADER": str(container),
        "CALLS": str(container / "calls"),
        "STATUS": str(status),
        "PATH": f"{container / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run([TEMPLATES / "gradescope" / script], env=os.environ | own, timeout=20)
    return done.returncode, (container / "calls").read_text().splitlines()


def test_gradescopes_image_is_set_up_with_the_small_torch(container):
    status, calls = call(container, "setup.sh")
    assert status == 0
    assert "install" in calls[0]
    assert calls[1:] == [f"cpu|{container}/source/course|setup"]


@pytest.mark.parametrize(("status", "ends_with"), [(0, 0), (1, 0), (2, 2), (3, 3)])
def test_gradescope_gets_its_json_of_all_that_was_handed_in(container, status, ends_with):
    for name in ("03_ddp.ipynb", "a exercise_04_2.py", "notes.txt"):
        (container / "submission" / name).touch()
    ended, (grade,) = call(container, "run_autograder", status)
    assert ended == ends_with
    _, folder, arguments = grade.split("|")
    assert folder == f"{container}/submission"
    out = f"{container}/results/results.json"
    assert arguments == f"grade --json {out} 03_ddp.ipynb a exercise_04_2.py"


def test_classroom_reports_each_exercise_that_it_grades():
    (job,) = yaml.safe_load((TEMPLATES / "classroom.yml").read_text())["jobs"].values()
    graders = [step for step in job["steps"] if "command-grader" in step.get("uses", "")]
    assert len(graders) == 2
    for step in graders:
        program, *words = shlex.split(step["with"]["command"])
        (number,) = parser().parse_args(words).only
        assert program == "course/run.sh"
        assert step["with"]["test-name"] == f"{number} {find(number).title}"
    reporter = job["steps"][-1]
    ids = [step["id"] for step in graders]
    assert reporter["with"]["runners"].split(",") == ids
    assert reporter["env"] == {
        f"{name.upper()}_RESULTS": f"${{{{ steps.{name}.outputs.result }}}}" for name in ids
    }
