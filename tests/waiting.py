"""What tests wait for that comes about by itself, a moment later."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether `condition` comes to hold within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
