"""Lets the stop button reach runs that other threads started: Python interrupts only the main one.

IPython runs each cell in the main thread. `watch` is called before each, and what was pressed
holds until the next: tasks that a pool still has in its queue do not start either.
"""

import signal
import threading
from typing import Any

_pressed = threading.Event()
_handler: Any = signal.default_int_handler  # the one in whose place ours stands


def watch(*_: Any) -> None:
    """From now on, an interrupt of the main thread is one of all runs; earlier ones are over."""
    global _handler
    _pressed.clear()
    current = signal.getsignal(signal.SIGINT)
    if callable(current) and current is not _interrupt:
        _handler = current
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: Any) -> None:
    _pressed.set()
    _handler(number, frame)


def check() -> None:
    """Interrupt this thread, as Python does the main one.

    Raises:
        KeyboardInterrupt: the main thread has been interrupted since its cell began.
    """
    if _pressed.is_set() and threading.current_thread() is not threading.main_thread():
        raise KeyboardInterrupt
