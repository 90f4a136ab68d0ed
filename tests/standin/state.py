"""What the stand-in remembers."""

import threading
from dataclasses import dataclass, field
from typing import Any


class Thread(threading.local):
    """Of one thread."""

    device = 0  # the current GPU; each thread begins with the first
    batch: list[Any] | None = None  # the messages of a batch that is being made
    by_python = False  # Python has called a constructor: the device that it names is meant


@dataclass
class Process:
    """Of the whole process."""

    gpus: int = 0
    begun: bool = False  # this process has used CUDA
    busy: bool = False  # a GPU may still work on what it was given
    since: bool = False  # and was given something since the clock was read
    read: bool = False  # the clock was read at all

    # Bytes that a collective still writes: first, last + 1, its name, its handle.
    coming: list[tuple[int, int, str, Any]] = field(default_factory=list)

    def given(self) -> None:
        """A GPU has been given something to do."""
        self.busy = self.since = self.begun = True


THREAD, PROCESS = Thread(), Process()
