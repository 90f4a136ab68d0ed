"""Launches leave no semaphore in /dev/shm.

Nobody can say whose one was that lies there, and a process that is killed while it makes one leaves
it for good, as some tests do: none may run meanwhile.
"""

import contextlib
from pathlib import Path

from tests.waiting import wait_for

ENDS = """
import sys
from nbtorchrun.worker import init

init()
sys.exit(int(sys.argv[1]))
"""


def abandoned_semaphores() -> set[str]:
    """The semaphores in /dev/shm that no process has open."""
    there = {f"/dev/shm/{path.name}" for path in Path("/dev/shm").glob("sem.mp-*")}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            there -= {line.split()[-1] for line in maps.read_text().splitlines() if "/shm/" in line}
    return there


def test_launches_leave_no_semaphore(worker, launch):
    before = abandoned_semaphores()
    script = worker("ends.py", ENDS)
    warm_ones = 5 * [(3, True), *4 * [(0, True)]]
    for status, warm in [*warm_ones, (3, False), (0, False), (0, False)]:
        assert launch(script, status, warm=warm, check=False).ok == (status == 0)
    assert wait_for(lambda: not abandoned_semaphores() - before)
