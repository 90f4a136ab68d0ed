"""Many launches from one process leave nothing behind."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from course_utils import paths
from course_utils.launcher.client import kept_agent
from tests.waiting import wait_for

SCRIPT = """
import sys
import torch.distributed as dist
from course_utils.worker import init
init()
dist.barrier()
if len(sys.argv) > 1 and dist.get_rank() == 1:
    raise RuntimeError("as asked")
"""


def held() -> dict[str, object]:
    """What this process, its agent and the forkserver hold."""
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return {
        "processes": len(ours),
        "descriptors": sum(each.num_fds() for each in ours),
        "threads": sum(each.num_threads() for each in ours),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "run folders": sum(1 for _ in paths.runs().glob("*/*")),
    }


def abandoned_semaphores() -> set[str]:
    """The semaphores in /dev/shm that no process has open."""
    there = {f"/dev/shm/{path.name}" for path in Path("/dev/shm").glob("sem.mp-*")}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            there -= {line.split()[-1] for line in maps.read_text().splitlines() if "/shm/" in line}
    return there


@contextlib.contextmanager
def leaves_nothing_behind() -> Iterator[None]:
    """What is run in the block leaves as much as there was before."""
    before, abandoned = held(), abandoned_semaphores()
    yield
    assert held() == before
    # Those of other tests come and go, and are not there for long.
    assert wait_for(lambda: abandoned_semaphores() <= abandoned)


@pytest.mark.parametrize(("warm", "times"), [(True, 30), (False, 3)], ids=["warm", "cold"])
def test_launches_leave_nothing_behind(worker, launch, warm, times):
    script = worker("many.py", SCRIPT)
    for _ in range(3):
        launch(script, warm=warm)
    agent = kept_agent()
    with leaves_nothing_behind():
        for _ in range(times):
            launch(script, warm=warm)
    assert kept_agent() is agent


def test_two_hundred_launches_of_which_a_fifth_fail(worker, launch):
    script = worker("many.py", SCRIPT)

    def hundred() -> None:
        for number in range(100):
            run = launch(script, *(["fail"] if number % 5 == 0 else []), check=False)
            assert run.ok == (number % 5 != 0)

    hundred()  # of failed runs the folders are kept, but no more than twenty
    with leaves_nothing_behind():
        hundred()
