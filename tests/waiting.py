"""What tests wait for that comes about by itself, a moment later."""

import time
from collections.abc import Callable

import psutil


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether `condition` comes to hold within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def lives(pid: int) -> bool:
    """Whether a process still runs.

    An orphan that has ended keeps its pid until process 1 asks how it ended. Some ask every 2 s.
    """
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
