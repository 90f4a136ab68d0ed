"""Whatever is killed or interrupted, within 5 s no process of the run lives."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from course_utils import paths
from nbtorchrun.display import view
from nbtorchrun.launcher import processes
from nbtorchrun.worker import bootstrap
from nbtorchrun.worker.guards import start_of
from tests.waiting import wait_for

# Each rank ignores SIGTERM and has children of its own, one in another session: the worst there is.
STUBBORN = """
import os, signal, subprocess, sys, time
from nbtorchrun.worker import init
from nbtorchrun.worker.guards import start_of
signal.signal(signal.SIGTERM, signal.SIG_IGN)
init()
for apart in (False, True):
    child = [sys.executable, "-c", "import time; time.sleep(1000)", "MARK"]
    subprocess.Popen(child, start_new_session=apart)
print("up", flush=True)
time.sleep(1000)
"""
MANY_STRAYS = """
import subprocess, time
for _ in range(400):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("up", flush=True)
time.sleep(1000)
"""
# What a notebook forks has all its files open: the pipe to its agent too.
FORKS = """
import os, time
from nbtorchrun.launcher import client
client.kept_agent()
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
"""
NOTEBOOK = """
from course_utils import launch
launch("stubborn.py", nproc=2, warm=WARM, check=False)
"""


def processes_of(mark: str) -> list[psutil.Process]:
    """Every process that carries `mark`, the test's home, in its arguments or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            text = " ".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue
        if mark in text and process.pid != os.getpid():
            found.append(process)
    return found


@pytest.fixture
def start(tmp_path):
    """Start a stand-in for a kernel that launches stubborn ranks; give it and its home."""
    home = tmp_path / "home"
    (home / "workers").mkdir(parents=True)
    (home / "workers" / "stubborn.py").write_text(STUBBORN.replace("MARK", str(home)))
    environ = os.environ | {"COURSE_HOME": str(home), "PYTHONPATH": str(paths.ROOT)}
    kernels = []

    def begin(warm: bool, first: str = "") -> subprocess.Popen:
        code = first + NOTEBOOK.replace("WARM", str(warm))
        kernel = subprocess.Popen([sys.executable, "-c", code], env=environ)
        kernels.append(kernel)
        return kernel

    begin.home = home
    yield begin
    for process in processes_of(str(home)):
        process.kill()
    for kernel in kernels:
        kernel.wait(10)


def ranks_are_up(home) -> bool:
    logs = list(home.glob(".runs/*/*/rank_*/stdout.log"))
    return len(logs) == 2 and all(log.read_text() == "up\n" for log in logs)


def rank_processes(home) -> list[psutil.Process]:
    pids = home.glob(".runs/*/*/rank_*/pid")
    return [psutil.Process(int(path.read_text().split()[0])) for path in pids]


def assert_all_gone(home) -> None:
    gone = wait_for(lambda: not processes_of(str(home)), 5)
    assert gone, [(process.pid, process.cmdline()[:6]) for process in processes_of(str(home))]


def victim_of(name: str, kernel: subprocess.Popen, home) -> psutil.Process:
    """The process a case kills: the kernel, the agent, the forkserver or a rank."""
    if name == "kernel":
        return psutil.Process(kernel.pid)
    rank = rank_processes(home)[1]
    if name == "rank":
        return rank
    agent = next(p for p in rank.parents() if p.ppid() == kernel.pid)
    return agent if name == "agent" else rank.parent()


@pytest.mark.parametrize(
    ("victim", "warm"),
    [
        ("kernel", True),
        ("kernel", False),
        ("agent", True),
        ("agent", False),
        ("forkserver", True),
        ("rank", True),
        ("rank", False),
    ],
)
def test_sigkill_of_any_process(start, victim, warm):
    kernel = start(warm)
    assert wait_for(lambda: ranks_are_up(start.home), 40)
    victim_of(victim, kernel, start.home).kill()
    if victim != "kernel":
        assert kernel.wait(10) == 0  # the launch ends by itself, with a verdict
    assert_all_gone(start.home)


@pytest.mark.parametrize("waits", [0, 3])  # its agent still imports torch, or has nothing to do
def test_sigkill_of_a_kernel_that_has_started_no_run(start, waits):
    first = "import time\nfrom nbtorchrun.launcher import client\nclient.kept_agent()\n"
    kernel = start(warm=True, first=first + "time.sleep(1000)\n")
    own = psutil.Process(kernel.pid)
    assert wait_for(own.children)
    time.sleep(waits)
    kernel.kill()
    assert_all_gone(start.home)


def test_sigkill_of_a_kernel_whose_fork_lives_on(start):
    kernel = start(warm=True, first=FORKS)
    assert wait_for(lambda: ranks_are_up(start.home), 40)
    own = psutil.Process(kernel.pid)
    (fork,) = [child for child in own.children() if child.cmdline() == own.cmdline()]
    kernel.kill()
    wait_for(lambda: len(processes_of(str(start.home))) == 1, 5)
    assert processes_of(str(start.home)) == [fork]


@pytest.mark.parametrize(
    ("number", "warm"),
    [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGHUP, True), (signal.SIGTERM, False)],
)
def test_a_signal_to_the_kernel(start, number, warm):
    kernel = start(warm)
    assert wait_for(lambda: ranks_are_up(start.home), 40)
    sent = time.monotonic()
    kernel.send_signal(number)
    kernel.wait(10)
    assert time.monotonic() - sent < 8
    assert_all_gone(start.home)


def test_all_of_many_strays_are_found_when_the_kernel_is_gone(start):
    """The agent must not exit, because its ranks have, while it still looks for strays."""
    (start.home / "workers" / "stubborn.py").write_text(MANY_STRAYS)
    kernel = start(warm=True)
    assert wait_for(lambda: ranks_are_up(start.home), 40)
    kernel.kill()
    assert_all_gone(start.home)


def test_a_stray_is_killed_even_if_its_program_is_still_being_loaded(tmp_path, monkeypatch):
    environ = {"NBTORCHRUN_RUN_DIR": str(tmp_path)}
    stray = subprocess.Popen(["sleep", "1000"], env=os.environ | environ)
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / "pid").write_text(f"1 0 {start_of(stray.pid)} 1")
    shown = {stray.pid: [environ, {}]}  # what Linux shows, last to first

    def environ_of(process):
        if process.pid == os.getpid():
            time.sleep(1.5 * processes.LONGEST_LOAD)  # on a busy machine a look takes long
        return shown.get(process.pid, [{}]).pop()

    monkeypatch.setattr(psutil.Process, "environ", environ_of)
    try:
        processes.kill_strays(tmp_path)
        assert stray.wait(5) == -signal.SIGKILL
    finally:
        stray.kill()


def test_sigkill_of_the_kernel_at_random_moments(start):
    random.seed(7)
    for moment in range(12):
        kernel = start(warm=moment % 4 != 0)
        time.sleep(random.uniform(0.1, 4) if moment % 2 else random.uniform(0, 1.5))
        kernel.kill()
        assert_all_gone(start.home)


def test_a_rank_that_begins_when_its_run_is_over_ends_itself(tmp_path):
    processes.kill_ranks(tmp_path)
    (tmp_path / "late.py").write_text("print('late')")
    orders = {
        **{"run_dir": str(tmp_path), "script": str(tmp_path / "late.py"), "arguments": []},
        **{"import_from": [], "cwd": str(tmp_path), "parent": os.getpid(), "environ": None},
    }
    rank = subprocess.run(
        [sys.executable, bootstrap.__file__, json.dumps(orders)],
        env=os.environ | {"LOCAL_RANK": "0", "RANK": "0", "PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
    )
    assert rank.returncode == 1
    assert not rank.stderr
    assert not (tmp_path / "rank_0" / "stdout.log").exists()


def test_a_timeout_ends_stubborn_ranks_and_their_children(worker, launch):
    mark = f"timeout-{os.getpid()}"
    run = launch(worker("stubborn.py", STUBBORN.replace("MARK", mark)), timeout=2, check=False)
    assert run.verdict.kind == "hung"
    assert wait_for(lambda: not processes_of(mark), 5)


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_failure_ends_ranks_that_ignore_sigterm_before_torchrun_would(worker, launch, warm):
    fails = "if os.environ['RANK'] == '1':\n    raise ValueError\n"
    script = STUBBORN.replace("MARK", "child").replace("print", fails + "print")
    run = launch(worker("stubborn.py", script), warm=warm, check=False)
    failed = run.ranks[1].last("end")["at"]
    assert time.monotonic_ns() - failed < 25e9  # torchrun's own grace is 30 s
    assert (run.verdict.kind, run.verdict.rank) == ("raised", 1)
    assert [rank.exitcode for rank in run.ranks] == [None, 1]


def test_a_second_interrupt_ends_the_ranks_and_reaches_no_later_run(worker, launch, monkeypatch):
    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    class InterruptedTwice(view.Screen):
        def update(self):
            if len(processes_of(mark)) == 4:  # the children of both ranks
                threading.Timer(0.3, interrupt).start()  # while it waits for the ranks to end
                interrupt()
                time.sleep(1)

    mark = f"interrupt-{os.getpid()}"
    stubborn = worker("stubborn.py", STUBBORN.replace("MARK", mark))
    with monkeypatch.context() as patched:
        patched.setattr(view, "Screen", InterruptedTwice)
        with pytest.raises(KeyboardInterrupt, match="its ranks have ended"):
            launch(stubborn)
    assert wait_for(lambda: not processes_of(mark), 5)
    run = launch(worker("fine.py", "print('fine')"))
    assert [rank.stdout for rank in run.ranks] == ["fine\n", "fine\n"]
