"""Notebooks whose kernel dies: nbval 0.11 would wait until the time of the cell is over."""

import time
from queue import Empty
from typing import Any

LOOK = 1.0  # seconds between two looks at the kernel


def notice() -> None:
    """Let a cell under nbval fail as soon as its kernel is gone."""
    from nbval.kernel import RunningKernel

    get = RunningKernel.get_message

    def get_message(self: RunningKernel, stream: str, timeout: float | None = None) -> Any:
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while True:
            try:
                return get(self, stream, max(0.0, min(LOOK, end - time.monotonic())))
            except Empty:
                if not self.is_alive():
                    raise RuntimeError(
                        "the kernel died in this cell, or just before it. Does the cell end the "
                        "process, or use too much memory?"
                    ) from None
                if time.monotonic() >= end:
                    raise

    RunningKernel.get_message = get_message
