"""Hosts in network namespaces: they exchange messages, keep to their rate, and leave nothing."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from course_utils import links, paths
from nbtorchrun.errors import InputError, LaunchError
from tests.needs import needs
from tests.waiting import wait_for

permitted = needs(programs=("ip", "tc"), why_not=links.why_not())
SUM = """
import os
import torch
import torch.distributed as dist
from nbtorchrun.worker import init, report
init()
number = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(number)
print("rank", dist.get_rank(), "on node", os.environ["GROUP_RANK"])
report(sum=number.item())
"""
ENDLESS = """
import time
from nbtorchrun.worker import init, report
init()
report(started=True)
time.sleep(600)
"""
CALLER = """
from course_utils import links
from course_utils import paths
links.run("linked_endless.py", hosts=2, told=lambda report: print("started", flush=True))
"""


def inside() -> list[psutil.Process]:
    """The processes that hold hosts, on the whole machine."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "course_utils.links.inside" in words and os.environ["COURSE_HOME"] in str(words):
            found.append(process)
    return found


def cards() -> str:
    return subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout


@permitted
@pytest.mark.timeout(120)
def test_the_hosts_of_a_run_add_up_and_are_gone_afterwards(worker):
    before, told = cards(), []
    run = links.run(worker("linked_sum.py", SUM), hosts=2, nproc=2, mbit=1000, told=told.append)
    assert [report["sum"] for report in run.reports] == [10] * 4
    assert told == [{"sum": 10}]
    for rank in range(4):
        assert run.ranks[rank].stdout == f"rank {rank} on node {rank // 2}\n"
    meeting = "--nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint 10.0.0.10:29500"
    assert run.command == f"torchrun {meeting} workers/linked_sum.py"
    assert not inside()
    assert cards() == before


PING = """
import time
import torch
import torch.distributed as dist
from nbtorchrun.worker import init, report
init(ranks=2)
ball, taken = torch.zeros(1), []
for _ in range(8):
    start = time.perf_counter()
    if dist.get_rank() == 0:
        dist.send(ball, 1)
        dist.recv(ball, 1)
    else:
        dist.recv(ball, 0)
        dist.send(ball, 0)
    taken.append(time.perf_counter() - start)
report(seconds=min(taken))
"""


@needs(programs=("ip", "tc"), why_not=links.why_not(delay=True))
@pytest.mark.timeout(120)
def test_a_message_and_its_answer_take_twice_the_delay(worker):
    script = worker("linked_ping.py", PING)
    at_once, delayed = (
        links.run(script, hosts=2, delay=delay).series("seconds")[0] for delay in (0, 0.1)
    )
    assert delayed >= 0.2
    # gloo asks for a message before it is sent, so each of the two may cross the link twice.
    assert delayed - at_once < 0.6
    assert at_once < delayed / 2


@permitted
@pytest.mark.timeout(120)
def test_a_rank_that_raises_is_named(worker):
    script = worker("linked_raises.py", "import os\nif os.environ['RANK'] == '1':\n    1 / 0\n")
    with pytest.raises(LaunchError, match="rank 1: ZeroDivisionError"):
        links.run(script, hosts=2)
    assert not inside()


@permitted
@pytest.mark.timeout(120)
def test_a_run_that_does_not_end_is_stopped_in_time(worker):
    with pytest.raises(LaunchError, match="stopped after 3 s"):
        links.run(worker("linked_endless.py", ENDLESS), hosts=2, timeout=3)
    assert not inside()


@permitted
@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=str)
def test_nothing_outlives_the_caller(worker, how):
    before = cards()
    worker("linked_endless.py", ENDLESS)
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert caller.stdout.readline() == b"started\n"
        assert inside()
        caller.send_signal(how)
        caller.wait(30)
        assert wait_for(lambda: not inside())
        assert cards() == before
    finally:
        caller.kill()
        caller.wait()
        caller.stdout.close()


def test_what_passes_for_free_is_short():
    for mbit in (1, 25, 100, 400, 1000):
        assert links.burst(mbit) <= max(4 * links.PACKET, 0.0021 * links.bandwidth(mbit))
    assert links.burst("100") == 4 * links.PACKET


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hosts": 0}, "the number of hosts must be from 1 to 16, not 0"),
        ({"hosts": 2.5}, "the number of hosts must be from 1 to 16, not 2.5"),
        ({"nproc": 0}, "the number of ranks must be a whole number from 1 to 64, not 0"),
        ({"mbit": 0}, "a link's rate must be above 0 Mbit/s, not 0"),
        ({"delay": -1}, "a link's delay must be from 0 to 10 seconds, not -1"),
    ],
)
def test_numbers_that_cannot_be(options, said):
    with pytest.raises(InputError, match=said):
        links.run("nothing.py", **options)


@permitted
def test_a_machine_without_virtual_cards_says_so_in_one_sentence(monkeypatch):
    monkeypatch.setattr(links, "TUN", "/dev/null/tun")
    with pytest.raises(InputError, match="a link with a delay needs /dev/null/tun, which cannot"):
        links.run("nothing.py", delay=0.01)


def test_a_machine_that_permits_no_hosts_says_why(monkeypatch):
    monkeypatch.setattr(links, "namespaces", lambda: ["sh", "-c", "echo not here >&2; exit 1"])
    monkeypatch.setattr(links.shutil, "which", lambda name: name)
    monkeypatch.setattr(links.sys, "platform", "linux")
    assert links.why_not() == "this machine does not allow network namespaces (not here)"
    monkeypatch.setattr(links.sys, "platform", "darwin")
    with pytest.raises(InputError, match="cannot make hosts here: network namespaces need"):
        links.run("nothing.py")


def test_notebook_04_shows_what_was_saved_where_no_hosts_can_be_made(launch):
    run = launch("on_links.py", nproc=1, env={"PATH": ""})
    assert "not measured here: " in run.ranks[0].stdout
    assert "8 hosts, 1 MB: through rank 0  1." in run.ranks[0].stdout
    assert [row["ranks"] for row in run.reports if "way" in row] == [2] * 3 + [4] * 3 + [8] * 3
    assert sum("size" in row for row in run.reports) == 7


def test_hosts_find_this_package_beside_what_the_path_had(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert links.environ()["PYTHONPATH"] == f"/somewhere{os.pathsep}{paths.ROOT}"
