"""`python -m course_utils`, the command line behind run.sh."""

import json
import os
import re
import subprocess
import sys

import pytest

from course_utils import places

DEMO = '''"""Count to a number."""
import argparse

from course_utils.worker import init, rank, report


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=int, default=3, help="the last number")
    return parser.parse_args(argv)


init()
for step in range(parse_arguments().to):
    print("count", step)
report(total=parse_arguments().to)
'''
PROOF = """
from course_utils.worker import rank, report
if rank() == 0:
    report(claim="it counts", on="2 ranks", worst=WORST, bound=1)
"""


@pytest.fixture
def course(tmp_path):
    """Run the command line of a copy of the package beside small notebooks."""
    root = tmp_path / "a course"
    (root / "notebooks").mkdir(parents=True)
    (root / "course_utils").symlink_to(places.ROOT / "course_utils")
    home = tmp_path / "home"

    def call(*arguments, worst=0, stdout=subprocess.PIPE):
        cells = [
            ("%%torchrun -n 2 --as counting count.py\n" + DEMO, ["demo:count"]),
            (
                "%%torchrun -n 3 prove.py\n" + PROOF.replace("WORST", str(worst)),
                ["proof:count"],
            ),
        ]
        book = {
            "cells": [
                {"cell_type": "code", "metadata": {"tags": tags}, "source": source}
                for source, tags in cells
            ]
        }
        (root / "notebooks" / "03_counting.ipynb").write_text(json.dumps(book))
        code = (
            "import sys, pathlib; from course_utils import places;"
            f"places.NOTEBOOKS = pathlib.Path({str(root / 'notebooks')!r});"
            "from course_utils.__main__ import main; sys.exit(main(sys.argv[1:]))"
        )
        environ = os.environ | {"COURSE_HOME": str(home), "PYTHONPATH": str(places.ROOT)}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )

    call.home = home
    return call


def test_list_shows_a_line_for_each_demo(course):
    done = course("list")
    assert done.returncode == 0
    assert done.stdout == "count   03   Count to a number.\n"


def test_a_demo_runs_its_ranks_and_then_its_proofs(course):
    done = course("demo", "count", "--nproc-per-node", "3", "--to", "2")
    assert done.returncode == 0, done.stderr
    assert "torchrun --standalone --nproc-per-node 3 workers/count.py --to 2" in done.stdout
    for rank in range(3):
        lines = re.findall(rf"^\[rank {rank}\] (count \d)$", done.stdout, re.MULTILINE)
        assert lines == ["count 0", "count 1"]
    assert "3 ranks · gloo · cpu · ok" in done.stdout
    assert "it counts   2 ranks       0         1" in done.stdout
    assert "all 1 claims hold" in done.stdout
    assert "\033" not in done.stdout


def test_a_reader_that_leaves_ends_the_demo_without_a_traceback(course):
    read, write = os.pipe()
    os.close(read)  # as `| head` does once it has its lines
    done = course("demo", "count", stdout=write)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_claim_that_does_not_hold_gives_status_1(course):
    done = course("demo", "count", worst=2)
    assert done.returncode == 1
    assert "NOT PROVEN: it counts" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "count", "--nproc-per-node", "0"], "from 1 to 64"),
        (["demo", "count", "--nproc-per-node", "1000"], "from 1 to 64"),
        (["demo", "count", "--nproc-per-node", "abc"], "'abc' is not a whole number"),
        (["demo", "count", "--timeout", "-1"], "above 0"),
        (["demo", "count", "--too", "3"], "unrecognized arguments: --too"),
        (["demo", "count", "--to", "x"], "invalid int value: 'x'"),
        (["demo", "nothing"], "there is no demo 'nothing'; there are: count"),
        (["demo"], "required: name"),
        (["nothing"], "invalid choice: 'nothing'"),
        (["list", "--all"], "list has no option --all"),
        (["bench", "nothing"], "there is no benchmark 'nothing'"),
    ],
)
def test_a_bad_call_is_refused_in_one_sentence_and_nothing_starts(course, arguments, said):
    done = course(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (course.home / ".runs").exists()


def test_a_demos_help_comes_from_its_script(course):
    done = course("demo", "count", "--help")
    assert done.returncode == 0
    assert "Count to a number." in done.stdout
    assert "--to TO" in done.stdout
    assert "./run.sh demo count [--nproc-per-node N]" in done.stdout


def test_extract_writes_every_file_and_keeps_changed_ones(course):
    assert course("extract").returncode == 0
    count = course.home / "workers" / "count.py"
    assert count.read_text() == DEMO
    count.write_text("mine")
    assert "2 worker files" in course("extract").stdout
    assert count.read_text() == "mine"


def test_clean_removes_what_runs_left(course):
    course("extract")
    (course.home / ".runs" / "x").mkdir(parents=True)
    assert course("clean").returncode == 0
    assert list(course.home.iterdir()) == []


def test_the_command_line_needs_no_torch():
    code = "import course_utils.__main__, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=places.ROOT, timeout=60).returncode == 0
