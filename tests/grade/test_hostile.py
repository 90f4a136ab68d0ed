"""An answer that is hostile, or never ends, costs its own exercise and nothing else."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from course_utils.exercises import find
from tests.waiting import lives, wait_for

pytestmark = pytest.mark.timeout(600)

RIGHT = find("00.1").ours
WRONG = "\ndef global_rank(node_rank, local_rank, ranks_on_node):\n    return 0\n"
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
said = json.dumps({"state": "passed", "lines": []}).encode() + b"\\n"
for descriptor in range(3, 60):
    try:
        os.write(descriptor, said)
    except OSError:
        pass
os._exit(0)
"""
RMTREE = "import os, shutil\nshutil.rmtree(os.path.expanduser('~'))"
BIG = "with open('big', 'wb') as big:\n    while True: big.write(bytes(1_000_000))"
MANY = "import os, time\nfor n in range(20): open(f'{n}', 'wb').write(bytes(50_000_000))"
TOLD = r"raise ValueError('\x1b[2J \ud800 %s' % __import__('os').environ.get('A_TOKEN'))"
LEFT = "import pathlib, course_utils\nleft = pathlib.Path(course_utils.__file__).parent / 'left'\n"
CHANGES = LEFT + "left.parent.chmod(0o755)\nleft.touch()\n"
MEETS = LEFT + "assert not left.exists(), 'another answer has changed the course'\n"
HOSTILE = {  # with what is said of each
    "it ends its process": ("import os\nos._exit(0)" + WRONG, "os._exit"),
    "it starts processes": (SLEEPERS + WRONG, "started more than 100 processes"),
    "it removes its home": (RMTREE + WRONG, ""),
    "it prints megabytes": ("print('x' * 30_000_000)" + WRONG, "global_rank("),
    "it fills the disk": (BIG + WRONG, "File too large"),
    "it fills the disk with many files": (MANY + WRONG, "wrote more than 200 MB"),
    "it forges the message": (FORGED + WRONG, "os._exit"),
    "it changes its check": (CHANGES + WRONG, "global_rank("),
    "it shows a token": (TOLD + WRONG, r"ValueError: \x1b[2J \ud800 None"),
}


def test_each_costs_its_own_exercise_and_nothing_else(students, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "secret")
    pids = students.folder / "pids"
    files = [
        students.file(f"{name}/exercise_00_1.py", text.replace("PIDS", str(pids)))
        for name, (text, _) in HOSTILE.items()
    ]
    right = students.file("right/exercise_00_1.py", MEETS + RIGHT)
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
    assert "\x1b" not in done.stdout
    assert not living(pids)


def living(pids: Path) -> list[int]:
    """Which of the processes that noted their pids still live."""
    found = [int(pid) for pid in pids.read_text().split()]
    assert found
    return [pid for pid in found if lives(pid)]


def test_an_answer_that_never_ends_is_ended_at_its_limit(students):
    endless = students.file("exercise_00_1.py", BLOCKED + "while True: pass\n" + WRONG)
    done = students.grade(endless, "--timeout", "6", within=100)
    assert done.returncode == 1
    assert "not done after 6 s" in done.tests[0]["output"]


def test_what_was_found_is_written_when_the_grader_is_killed(students):
    broken = students.file("exercise_00_1.py", "def global_rank(:")
    endless = students.file("b/exercise_00_1.py", BLOCKED + "while True: pass\n" + WRONG)
    out = students.folder / "out.json"
    grader = students.start(broken, endless, "--json", out)
    try:
        assert wait_for(lambda: out.exists() and json.loads(out.read_text())["tests"], 120)
        assert wait_for(lambda: psutil.Process(grader.pid).children(recursive=True)[2:], 120)
        below = psutil.Process(grader.pid).children(recursive=True)
    finally:
        grader.send_signal(signal.SIGKILL)
        grader.communicate(timeout=60)
    found = json.loads(out.read_text())
    assert found["output"] == "0 of 1 passed, 1 not yet, 1 of 2 checked"
    assert found["tests"][0]["output"] == (
        "not yet\nSyntaxError: invalid syntax (exercise_00_1.py, line 1)"
    )
    assert wait_for(lambda: not any(lives(process.pid) for process in below)), below


def test_an_answer_in_ranks_that_leaves_a_process_behind_leaves_none(students):
    pids = students.folder / "pids"
    sleeper = (
        "import subprocess\n"
        "left = subprocess.Popen(['sleep', '987'], start_new_session=True, env={})\n"
        f"print(left.pid, file=open('{pids}', 'a'))\n"
    )
    right = students.file("exercise_00_1.py", sleeper + find("00.1").ours)
    done = students.grade(right)
    assert done.tests[0]["extra_data"]["state"] == "passed", done.tests
    assert not living(pids)
