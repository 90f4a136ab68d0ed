"""What the tests share: worker files, quiet launches, and a look for ranks that were left."""

import os
from pathlib import Path

import psutil
import pytest

from course_utils import launch as course_launch
from course_utils import paths


@pytest.fixture
def worker():
    """Write a worker file; it is removed after the test."""
    written: list[Path] = []

    def write(name: str, source: str) -> str:
        path = paths.workers() / name
        path.write_text(source)
        written.append(path)
        return name

    yield write
    for path in written:
        path.unlink(missing_ok=True)


@pytest.fixture
def launch():
    """`launch` without a display, and with a deadline fit for tests."""

    def quiet(*arguments, **options):
        return course_launch(*arguments, **{"show": False, "timeout": 60, **options})

    return quiet


@pytest.fixture(autouse=True)
def no_rank_is_left():
    """After each test no rank that it started lives."""
    yield
    ranks = [child for child in psutil.Process().children(recursive=True) if is_rank(child)]
    _, alive = psutil.wait_procs(ranks, timeout=5)
    for rank in alive:
        rank.kill()
    assert not alive, f"still alive: {alive}"


def is_rank(process: psutil.Process) -> bool:
    """Whether a process below this one is a rank: it leads a group, and an agent started it."""
    try:
        return os.getpgid(process.pid) == process.pid and process.ppid() != os.getpid()
    except (psutil.Error, ProcessLookupError):
        return False
