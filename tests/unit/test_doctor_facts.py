"""What the doctor makes of the facts about a machine, and how it reads them."""

import subprocess
import sys
from functools import partial
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_utils import paths
from tools import container, doctor, trial
from tools.doctor import GIB, cores, disk, memory, shared_memory

FOLDER = Path("/course")
MACHINE = [
    (partial(cores, 4, inf), "ok", "4, shared", ""),
    (partial(cores, 4, 8.0), "ok", "4, shared", ""),
    (partial(cores, 1, inf), "note", "1, shared", "use 2 or more"),
    (partial(cores, 4, 0.5), "note", "4 cores, but this container may use only 0.5", "2 or more"),
    (partial(memory, 16 * GIB, 8 * GIB), "ok", "8.0 of 16.0 GiB free", ""),
    (partial(memory, 16 * GIB, GIB), "problem", "1.0 of 16.0 GiB free", "close other programs"),
    (partial(memory, 4 * GIB, 3 * GIB), "note", "3.0 of 4.0", "few ranks"),
    (partial(disk, FOLDER, 50 * GIB, True), "ok", "50.0 GiB free in /course", ""),
    (partial(disk, FOLDER, GIB // 2, True), "problem", "0.5 GiB free in /course", "make room"),
    (partial(disk, FOLDER, GIB, False), "problem", "/course is not writable", "COURSE_HOME"),
    (partial(shared_memory, GIB), "ok", "1.00 GiB free", ""),
    (partial(shared_memory, None), "problem", "missing or not writable", "--shm-size=1g"),
    (partial(shared_memory, 0), "problem", "0.00 GiB", "make room"),
    (partial(shared_memory, GIB // 16), "note", "0.06 GiB", "NCCL may need more"),
]


@pytest.mark.parametrize(("check", "mark", "found", "remedy"), MACHINE)
def test_what_a_machine_has_and_lacks(check, mark, found, remedy):
    said = check()
    assert said.mark == mark
    assert found in said.found
    assert remedy in said.remedy
    assert bool(said.remedy) == (mark != "ok")


def test_a_loopback_that_is_down_is_found():
    assert doctor.loopback().mark == "ok"
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    if sys.platform != "linux" or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    command = [
        *alone,
        sys.executable,
        "-c",
        "from tools import doctor as d; print(d.loopback())",
    ]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("problem"), done.stderr
    assert "127.0.0.1 does not answer" in done.stdout
    assert "bring up the interface lo" in done.stdout


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
        ("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, (inf, inf, inf)),
        ("", {}, (inf, inf, inf)),
    ],
    ids=["version 2", "around it", "version 1", "no limit", "none"],
)
def test_the_limits_of_a_control_group(tmp_path, own, files, limits):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert container.limits(tmp_path, tmp_path / "own") == limits


def test_a_kernel_of_another_environment_is_found(tmp_path, monkeypatch):
    assert doctor.kernel().mark == "ok"
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["/other/bin/python3"], "display_name": "", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = doctor.kernel()
    assert (found.mark, found.found) == ("note", "python3 is /other/bin/python3")
    assert "./run.sh lab" in found.remedy


def test_a_wrong_sum_of_two_ranks_is_told(monkeypatch):
    ranks = [SimpleNamespace(last=lambda _, sum_=sum_: {"sum": sum_}, stderr="") for sum_ in (3, 1)]
    run = SimpleNamespace(ok=True, seconds=1.0, verdict=None, ranks=ranks)
    monkeypatch.setattr("nbtorchrun.launcher.running.launch_path", lambda *_: run)
    assert trial.two_ranks() == ("two ranks added up 1 and 2, and got [3, 1]", False)
