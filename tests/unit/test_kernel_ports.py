"""The ports of the tests' kernels: no rank can be given one before the kernel binds it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.connect import LocalPortCache

from course_utils import paths
from tests import kernel_ports

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")  # of ports for whoever asks for any


@pytest.mark.skipif(not RANGE.exists(), reason="only Linux says which ports it gives")
def test_jupyter_chooses_ports_that_the_system_gives_to_nobody():
    lowest, _ = map(int, RANGE.read_text().split())
    assert LocalPortCache.instance().find_available_port("127.0.0.1") < lowest


def test_neither_a_port_that_is_in_use_nor_one_twice(monkeypatch):
    ports = kernel_ports.KernelPorts()
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(kernel_ports, "PORTS", [taken, *range(30_000, 30_010)])
        given = {ports.find_available_port("127.0.0.1") for _ in range(8)}
    assert taken not in given
    assert len(given) == 8


def test_no_two_workers_choose_from_the_same_ports():
    code = "from tests.kernel_ports import PORTS; print(*PORTS)"
    given = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTEST_XDIST_WORKER": worker},
            cwd=paths.ROOT,
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout.split()
        for worker in ("gw0", "gw1", "gw11")
    ]
    assert len(set().union(*given)) == sum(map(len, given)) >= 300
