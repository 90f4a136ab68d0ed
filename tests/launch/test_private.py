"""Nobody is let in: sockets on the loopback only, and folders are private."""

import os
import subprocess
import sys
import threading

import psutil
import pytest

from course_utils import paths
from nbtorchrun import settings

WAITS = """
import time
from nbtorchrun.worker import init
init()
print("up", flush=True)
time.sleep(1.5)
"""


def listening(process: psutil.Process) -> set[str]:
    """The addresses on which a process listens."""
    try:
        connections = process.net_connections("inet")
    except psutil.Error:
        return set()
    return {conn.laddr.ip for conn in connections if conn.status == psutil.CONN_LISTEN}


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_nothing_listens_beyond_the_loopback_and_folders_are_private(
    worker, launch, monkeypatch, warm
):
    from nbtorchrun.display import view

    seen: set[str] = set()

    class Looking(view.Screen):
        def update(self):
            for process in psutil.Process().children(recursive=True):
                seen.update(listening(process))

    monkeypatch.setattr(view, "Screen", Looking)
    run = launch(worker("waits.py", WAITS), warm=warm)
    assert seen == {"127.0.0.1"}
    for folder in (run.dir, run.dir.parent, run.dir.parent.parent, run.ranks[0].dir):
        assert folder.stat().st_mode & 0o777 == 0o700, folder
    for file in run.dir.rglob("*.log"):
        assert file.stat().st_mode & 0o077 == 0, file


SESSION = """
import os, signal, socket, sys
machine, end = sys.argv[1:]
socket.gethostname = lambda: machine
import course_utils  # says where runs are kept
from nbtorchrun.launcher.folder import session_folder
session_folder()
if end == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_kernel_left_is_removed_on_its_own_machine_alone(tmp_path):
    environ = os.environ | {"COURSE_HOME": str(tmp_path), "PYTHONPATH": str(paths.ROOT)}

    def sessions_after_a_kernel(machine: str, end: str) -> int:
        subprocess.run([sys.executable, "-c", SESSION, machine, end], env=environ, timeout=60)
        return len(list(tmp_path.glob(".runs/*")))

    assert sessions_after_a_kernel("one-1.lab", "killed") == 1
    assert sessions_after_a_kernel("two", "exited") == 1  # for all it knows the other lives
    assert sessions_after_a_kernel("one-1.lab", "exited") == 0


def test_a_kernel_that_ends_meanwhile_takes_no_verdict_away(launch):
    over, session = threading.Event(), settings.runs() / "20260101-000000-box-1"

    def others_come_and_go() -> None:
        while not over.is_set():
            session.mkdir()
            session.rmdir()

    others = threading.Thread(target=others_come_and_go)
    others.start()
    try:
        kinds = {launch("nowhere.py", check=False).verdict.kind for _ in range(100)}
    finally:
        over.set()
        others.join()
    assert kinds == {"launcher"}


def test_a_read_only_checkout_uses_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: path != paths.ROOT)
    assert paths.workers() == tmp_path / "distributed-course" / "workers"
    assert settings.runs().stat().st_mode & 0o777 == 0o700


def test_data_lie_in_a_read_only_checkout_if_somebody_has_put_them_there(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert paths.data() == tmp_path / "home" / "data"
    (tmp_path / "data" / "MNIST").mkdir(parents=True)
    assert paths.data() == tmp_path / "data"
