"""An answer that is hostile, or never ends, costs its own exercise and nothing else."""

import os
from pathlib import Path

import pytest

from course_utils.checking.registry import find
from tests.waiting import lives

pytestmark = pytest.mark.timeout(600)

RIGHT = find("03.2").solution
BUCKETS = "\ndef my_buckets(sizes, cap, first_cap):\n    return []\n"
BLOCKED = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, list(signal.Signals))\n"
SLEEPERS = """
import os, time
for _ in range(150):
    if os.fork() == 0:
        os.setsid()
        with open("PIDS", "a") as pids:
            print(os.getpid(), file=pids)
        time.sleep(1000)
time.sleep(1000)
"""
FORGED = """
import json, os
said = json.dumps({"state": "passed", "lines": [], "word": ""}).encode() + b"\\n"
for descriptor in range(3, 60):
    try:
        os.write(descriptor, said)
    except OSError:
        pass
os._exit(0)
"""
RMTREE = "import os, shutil\nshutil.rmtree(os.path.expanduser('~'))"
BIG = "with open('big', 'wb') as big:\n    while True: big.write(bytes(1_000_000))"
REPLACED = "import course_utils.checking.check as c\nc.called = lambda *a: []"
HOSTILE = {  # for 03.2, whose check runs the answer in its own process; with what is said of it
    "it exits": (BUCKETS.replace("return []", "raise SystemExit"), "ended with an exit"),
    "it exits while it is read": ("raise SystemExit" + BUCKETS, "Is there an exit() in it?"),
    "it exits at once": ("import os\nos._exit(0)" + BUCKETS, "ended with status 0"),
    "it starts processes": (SLEEPERS + BUCKETS, "started more than 100 processes"),
    "it removes its home": (RMTREE + BUCKETS, "my_buckets([3, 4, 4, 4, 5]"),
    "it prints megabytes": ("print('x' * 30_000_000)" + BUCKETS, "my_buckets([3, 4, 4, 4, 5]"),
    "it fills the disk": (BIG + BUCKETS, "File too large"),
    "it replaces the check": (REPLACED + BUCKETS, "that is the course's own version"),
    "it forges the message": (FORGED + BUCKETS, "ended with status 0"),
}


def test_each_costs_its_own_exercise_and_nothing_else(students):
    pids = students.folder / "pids"
    files = [
        students.file(f"{name}/exercise_03_2.py", text.replace("PIDS", str(pids)))
        for name, (text, _) in HOSTILE.items()
    ]
    right = students.file("right/exercise_03_2.py", RIGHT)
    before = set(os.listdir(students.folder))
    done = students.grade(*files, right, within=580)
    assert (done.returncode, done.stderr) == (1, "")
    *hostile, last = done.tests
    said = {test["extra_data"]["file"].split("/")[-2]: test["output"] for test in hostile}
    for name, (_, words) in HOSTILE.items():
        assert said[name].startswith("not yet\n"), f"{name}: {said[name]}"
        assert words in said[name], f"{name}: {said[name]}"
    assert last["extra_data"]["state"] == "passed", last
    assert set(os.listdir(students.folder)) == before | {"out.json", "pids"}
    assert not living(pids)


def living(pids: Path) -> list[int]:
    """Which of the processes that noted their pids still live."""
    found = [int(pid) for pid in pids.read_text().split()]
    assert found
    return [pid for pid in found if lives(pid)]


def test_an_answer_that_never_ends_is_ended_at_its_limit(students):
    endless = students.file("exercise_03_2.py", BLOCKED + "while True: pass\n" + BUCKETS)
    done = students.grade(endless, "--timeout", "6", within=60)
    assert done.returncode == 1
    assert "not done after 6 s" in done.tests[0]["output"]


def test_an_answer_in_ranks_that_leaves_a_process_behind_leaves_none(students):
    pids = students.folder / "pids"
    sleeper = (
        "import subprocess\n"
        "left = subprocess.Popen(['sleep', '987'], start_new_session=True, env={})\n"
        f"print(left.pid, file=open('{pids}', 'a'))\n"
    )
    right = students.file("exercise_00_1.py", sleeper + find("00.1").solution)
    done = students.grade(right)
    assert done.tests[0]["extra_data"]["state"] == "passed", done.tests
    assert not living(pids)
