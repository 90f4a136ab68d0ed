"""What counts as life: work of the ranks and of all that they start, and nothing else."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import pytest

from nbtorchrun.launcher import processes
from nbtorchrun.worker import ending
from nbtorchrun.worker.guards import start_of
from tests.launch.fault import START
from tests.waiting import lives, wait_for

COMPUTES = "end = time.monotonic() + 3.5\nwhile time.monotonic() < end:\n    sum(range(1000))\n"
SLEEPS = "time.sleep(100)\n"
IN_THE_RANK = START + "if rank == 1:\n    exec(WORK)\ndist.barrier()\n"
IN_A_PROGRAM = (
    START + "if rank == 1:\n"
    "    subprocess.run([sys.executable, '-c', 'import time\\n' + WORK])\n"
    "dist.barrier()\n"
)
IN_A_DATALOADER = (
    START + "class Slow(torch.utils.data.Dataset):\n"
    "    def __len__(self):\n        return 1\n"
    "    def __getitem__(self, index):\n        exec(WORK)\n        return index\n"
    "if rank == 1:\n    list(torch.utils.data.DataLoader(Slow(), num_workers=1))\n"
    "dist.barrier()\n"
)
SCRIPTS = pytest.mark.parametrize("script", [IN_THE_RANK, IN_A_PROGRAM, IN_A_DATALOADER])


@SCRIPTS
def test_a_rank_lives_by_what_it_and_its_children_compute(worker, launch, script):
    run = launch(worker("works.py", f"WORK = {COMPUTES!r}\n{script}"), stall=2, check=False)
    assert run.ok, run.verdict


@SCRIPTS
def test_a_rank_whose_children_all_sleep_hangs(worker, launch, script):
    run = launch(worker("sleeps.py", f"WORK = {SLEEPS!r}\n{script}"), stall=2, check=False)
    assert run.verdict.kind == "hung"
    assert run.verdict.rank == 1
    assert "the run hangs: for 2 s" in run.verdict.text


def test_a_program_in_the_place_of_a_rank_is_not_ended_by_asking_for_its_stack(worker, launch):
    body = "import os\nos.execvp('sleep', ['sleep', '1000'])\n"
    run = launch(worker("becomes.py", body), timeout=3, check=False)
    assert run.verdict.kind == "hung", run.verdict


def test_a_program_in_the_place_of_a_rank_did_not_begin_in_an_except(worker, launch):
    body = """
if rank == 1:
    try:
        raise FileNotFoundError("handled")
    except FileNotFoundError:
        time.sleep(1)  # rank 0 asks it meanwhile, as it leaves
else:
    time.sleep(0.5)
os.execvp("sleep", ["sleep", "1000"])
"""
    run = launch(worker("deals.py", START + body), timeout=4, check=False)
    assert run.verdict.kind == "hung", run.verdict


def test_a_child_keeps_the_scripts_own_way_with_sigterm(worker, launch):
    body = """
import multiprocessing
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
forking = multiprocessing.get_context("fork")
runs = forking.Event()
child = forking.Process(target=lambda: (runs.set(), time.sleep(100)))
child.start()
runs.wait()  # a signal that comes before Python has begun in the child is lost
child.terminate()
child.join()
report(code=child.exitcode)
"""
    for told in launch(worker("terminates.py", START + body)).reports:
        assert told["code"] == 7


SLOW_TO_WRITE = """
import pathlib, signal, sys, time
from nbtorchrun.worker.guards import WANT_STACKS
def write(*_):
    time.sleep(0.5)  # as if the machine did not let it run
    pathlib.Path(sys.argv[1]).write_text("here")
signal.signal(WANT_STACKS, write)
print("ready", flush=True)
time.sleep(100)
"""


def test_the_stack_of_a_rank_that_gets_no_core_is_awaited(tmp_path):
    (tmp_path / "rank_0").mkdir()
    stack = tmp_path / "rank_0" / "stack.txt"
    stack.touch()
    command = [sys.executable, "-c", SLOW_TO_WRITE, str(stack)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as rank:
        try:
            assert rank.stdout.readline() == "ready\n"
            (tmp_path / "rank_0" / "pid").write_text(f"{rank.pid} 0 {start_of(rank.pid)} 1")
            processes.dump_stacks(tmp_path)
            assert stack.read_text() == "here"
        finally:
            rank.kill()


def test_a_process_that_has_got_the_pid_of_a_rank_is_left_alone(tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(100)"]
    other = subprocess.Popen(command, start_new_session=True)  # it leads a group, as a rank does
    (tmp_path / "rank_0").mkdir()
    written = tmp_path / "rank_0" / "pid"
    started = start_of(other.pid)
    try:
        written.write_text(f"{other.pid} 0 {started - 60} 1")  # a rank that ended a minute ago
        assert not processes.rank_processes(tmp_path)
        processes.dump_stacks(tmp_path)  # its signal would end a process without a handler
        processes.kill_ranks(tmp_path)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1)
        written.write_text(f"{other.pid} 0 {started} {other.pid}")
        processes.kill_ranks(tmp_path)
        assert wait_for(lambda: other.poll() is not None, 5)
    finally:
        other.kill()
        other.wait()


# A process that leads a group, starts another in it, and ends.
LEAVES_ONE = """
import os, subprocess, sys
os.setpgid(0, 0)
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
print(os.getpid(), left.pid, flush=True)
"""


@pytest.mark.parametrize("ours", [True, False])
def test_of_groups_without_a_leader_only_those_of_a_rank_s_session_are_ended(tmp_path, ours):
    leader = subprocess.Popen([sys.executable, "-c", LEAVES_ONE], stdout=subprocess.PIPE)
    group, left = map(int, leader.stdout.readline().split())
    leader.stdout.close()
    leader.wait()
    session = os.getsid(0) if ours else os.getsid(0) + 1
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / "pid").write_text(f"{group} 0 1.0 {session}")
    try:
        processes.kill_ranks(tmp_path)
        assert wait_for(lambda: not lives(left), 2) == ours
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


def test_the_end_of_a_rank_leaves_the_connections_of_the_process_that_forked_it(tmp_path):
    """As torchrun's to its store, which it needs for the next start of its ranks."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as here,
        listener.accept()[0] as there,
    ):
        child = os.fork()
        if not child:
            ending.begin(tmp_path, os.getpid())
            ending.over()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        here.sendall(b"x")
        there.settimeout(5)
        assert there.recv(1) == b"x"
