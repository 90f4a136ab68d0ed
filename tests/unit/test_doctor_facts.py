"""What the doctor makes of the facts about a machine, and how it reads them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from course_utils import paths
from course_utils.doctor import environment, helpers, machine, network
from course_utils.doctor.machine import GIB, ControlGroup, Machine
from course_utils.doctor.network import Network
from course_utils.launcher.folder import session_folder

MACHINE = Machine(
    cores=4,
    quota=None,
    memory=16 * GIB,
    available=8 * GIB,
    disk=50 * GIB,
    folder=Path("/course"),
    shared=GIB,
)
NETWORK = Network(
    broken="",
    name="box",
    address="127.0.1.1",
    ours=True,
    seconds=0.0,
    localhost="127.0.0.1",
    proxies=(),
)


def test_a_healthy_machine_gives_no_note():
    every = [*machine.findings(MACHINE), *network.findings(NETWORK), *helpers.findings([])]
    assert {each.mark for each in every} == {"ok"}
    assert not any(each.remedy for each in every)


@pytest.mark.parametrize(
    ("facts", "what", "mark", "found", "remedy"),
    [
        ({"cores": 1}, "cores", "note", "1, shared", "2 or more"),
        ({"quota": 0.5}, "cores", "note", "4, for 0.5 of whose time", "container"),
        ({"quota": 8.0}, "cores", "ok", "4, shared", ""),
        ({"available": GIB}, "memory", "problem", "1.0 of 16.0 GiB free", "close other programs"),
        ({"memory": GIB, "available": None}, "memory", "problem", "1.0 GiB", "need 2 GiB"),
        ({"memory": 4 * GIB, "available": 3 * GIB}, "memory", "note", "3.0 of 4.0", "few ranks"),
        ({"disk": GIB // 2}, "disk", "problem", "0.5 GiB free in /course", "make room"),
        ({"writable": False}, "disk", "problem", "/course cannot be written", "COURSE_HOME"),
        ({"shared": None}, "/dev/shm", "problem", "not there", "--shm-size=1g"),
        ({"shared": 0}, "/dev/shm", "problem", "0.00 GiB", "make room"),
        ({"shared": GIB // 16}, "/dev/shm", "note", "0.06 GiB", "NCCL may want more"),
    ],
)
def test_what_a_machine_lacks(facts, what, mark, found, remedy):
    said = {each.what: each for each in machine.findings(replace(MACHINE, **facts))}[what]
    assert said.mark == mark
    assert found in said.found
    assert remedy in said.remedy
    assert bool(said.remedy) == (mark != "ok")


@pytest.mark.parametrize(
    ("facts", "what", "mark", "found", "remedy"),
    [
        (
            {"broken": "127.0.0.1 does not answer: refused"},
            "loopback",
            "problem",
            "refused",
            "fire",
        ),
        ({"address": None, "ours": False}, "host name", "note", "no address", "127.0.1.1 box"),
        ({"address": "10.9.9.9", "ours": False}, "host name", "note", "another", "127.0.1.1 box"),
        ({"seconds": 8.0}, "host name", "note", "it took 8.0 s", "/etc/hosts"),
        ({"localhost": None}, "localhost", "note", "unknown", "127.0.0.1 localhost"),
        ({"proxies": ("http_proxy",)}, "proxy", "note", "http_proxy", "no_proxy=127.0.0.1"),
    ],
)
def test_what_is_wrong_with_a_network(facts, what, mark, found, remedy):
    said = {each.what: each for each in network.findings(replace(NETWORK, **facts))}[what]
    assert said.mark == mark
    assert found in said.found
    assert remedy in said.remedy


def test_the_facts_of_this_machine_can_be_read():
    facts = machine.read()
    assert facts.cores >= 1
    assert 0 < (facts.available or 1) <= facts.memory
    assert network.read().broken == ""


def test_a_loopback_that_is_down_is_found():
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    if sys.platform != "linux" or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    code = "from course_utils.doctor import network; print(next(network.look()))"
    done = subprocess.run(
        [*alone, sys.executable, "-c", code],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("problem"), done.stderr
    assert "127.0.0.1 does not answer" in done.stdout
    assert "bring up the interface lo" in done.stdout


@pytest.mark.parametrize(
    ("no_proxy", "found"),
    [("", ("http_proxy",)), ("127.0.0.1", ("http_proxy",)), ("localhost,127.0.0.1", ()), ("*", ())],
)
def test_a_proxy_counts_unless_this_machine_is_left_out(monkeypatch, no_proxy, found):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    assert network.proxies() == ()
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert network.proxies() == found


VERSION_2 = {
    "box/cpu.max": "150000 100000",
    "box/memory.max": "3000",
    "box/memory.current": "2500",
    "box/memory.stat": "anon 1\ninactive_file 700\nactive_file 5",
}
VERSION_1 = {
    "cpu/cpu.cfs_quota_us": "150000",
    "cpu/cpu.cfs_period_us": "100000",
    "memory/box/memory.limit_in_bytes": "3000",
    "memory/box/memory.usage_in_bytes": "2500",
    "memory/box/memory.stat": "cache 9\ninactive_file 1\ntotal_inactive_file 700",
}


@pytest.mark.parametrize(
    ("own", "files", "limits"),
    [
        ("0::/box\n", VERSION_2, (1.5, 3000, 1200)),
        ("0::/box/task\n", VERSION_2 | {"box/task/memory.max": "max"}, (1.5, 3000, 1200)),
        ("4:memory:/box\n2:cpu,cpuacct:/\n0::/\n", VERSION_1, (1.5, 3000, 1200)),
        ("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, (None, None, None)),
        ("", {}, (None, None, None)),
    ],
    ids=["version 2", "around it", "version 1", "no limit", "none"],
)
def test_the_limits_of_a_control_group(tmp_path, own, files, limits):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    group = ControlGroup(tmp_path, tmp_path / "own")
    assert (group.cores(), group.memory(), group.free()) == limits


def test_an_environment_is_called_what_it_is(tmp_path):
    assert "no virtual environment" in environment.kind_of(tmp_path)
    (tmp_path / "pyvenv.cfg").touch()
    assert environment.kind_of(tmp_path) == f"a virtual environment, {tmp_path}"
    (tmp_path / "conda-meta").mkdir()
    assert "a conda environment" in environment.kind_of(tmp_path)


@pytest.fixture
def helper_of(tmp_path):
    """Start a process that looks like the helper of the notebook with that pid."""
    started = []

    def start(owner: int) -> int:
        own = session_folder().name.removesuffix(str(os.getpid()))
        folder = tmp_path / ".runs" / f"{own}{owner}"
        folder.mkdir(parents=True)
        with (folder / "agent.log").open("w") as log:
            started.append(subprocess.Popen(["sleep", "60"], stderr=log))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def found(pid: int, state: str) -> helpers.Helper:
    """The helper with that pid, once it is in that state."""
    deadline = time.monotonic() + 20
    while True:
        found = {each.pid: each for each in helpers.read()}.get(pid)
        if found and getattr(found, state):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


@linux
def test_a_helper_whose_notebook_is_gone_is_found(helper_of):
    gone = subprocess.Popen(["true"])
    gone.wait()
    pid = helper_of(gone.pid)
    (said,) = helpers.findings([found(pid, "orphan")])
    assert said.mark == "note"
    assert f"process {gone.pid}, which is gone" in said.found
    assert f"kill -KILL {pid}" in said.remedy


@linux
def test_a_helper_that_was_stopped_is_found(helper_of):
    pid = helper_of(os.getpid())
    os.kill(pid, signal.SIGSTOP)
    (said,) = helpers.findings([found(pid, "stopped")])
    assert said.mark == "note"
    assert f"kill -CONT {pid}" in said.remedy


@linux
def test_a_helper_at_work_is_no_note(helper_of):
    pid = helper_of(os.getpid())
    (said,) = helpers.findings([each for each in helpers.read() if each.pid == pid])
    assert str(said) == "ok       helpers     1 at work, none left over"
