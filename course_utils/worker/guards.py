"""What is set up in a rank before the student's script: where output goes, and who ends it."""

import contextlib
import ctypes
import faulthandler
import functools
import gc
import io
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
OVER = "over"  # in a run's folder: the run is at its end


@contextlib.contextmanager
def modules_stay() -> Iterator[None]:
    """Keep the garbage collector off the modules imported here, now and later.

    They are never garbage. To look through torch's while it is imported, and again when the
    interpreter ends, takes a third of what a rank costs that does little else. And a collection
    in a forked rank would touch, and so copy, every page of them. Nor do torch's libraries
    unregister themselves one by one at the end, which takes a tenth of a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for finalizer in list(weakref.finalize._registry):
            finalizer.atexit = False


def write_down_pid(folder: Path) -> None:
    """Let the notebook's side know this rank; end it if the run is over by now.

    It looks for ranks after it has written `OVER`, and this rank for `OVER` after it has written
    its pid: one of them sees the other, also where torchrun has lost a rank it had begun to start.
    """
    # The start time too: when this rank has ended, its pid may be given to another process.
    started = psutil.Process().create_time()
    (folder / "pid").write_text(f"{os.getpid()} {os.environ['RANK']} {started}")
    if (folder.parent / OVER).exists():
        os._exit(1)


def redirect_output(folder: Path) -> None:
    """Write stdout and stderr of this process to files of its own; there is no stdin."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        getattr(sys, name).flush()
        log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, descriptor)
        os.close(log)
        # As with python -u, a forked rank too: one that dies has lost nothing it printed.
        raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115 (it stays open)
        text = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", write_through=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (it stays open)


def lead_process_group() -> None:
    """Lead a process group, so that what this rank starts can be ended with it."""
    if os.getpgid(0) != os.getpid():  # torchrun may have made it a leader, who cannot ask again
        os.setpgid(0, 0)


def die_with_parent(parent: int | None = None) -> None:
    """End this process when the one that started it is gone, even if that was killed.

    Args:
        parent: its pid; it may be gone already. None is the one this process has now.
    """
    parent = parent or os.getppid()
    if sys.platform == "linux":
        # The kernel sends it, so it comes even if the parent was killed and could clean up nothing.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # It says nothing of a parent that had gone before the call.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
    else:  # macOS has no such call
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpid(), signal.SIGKILL)  # with what it started: those have no such thread


def dump_stack_on_request(folder: Path) -> None:
    """On SIGUSR1 write all threads' stacks to `stack.txt`, also from inside a collective.

    On SIGTERM too, before it ends this process: torchrun sends it when another rank has failed.
    """
    # faulthandler writes from C, inside the signal handler. A handler in Python would have to wait
    # until the collective returns, and in a run that hangs it never does.
    stack = open(folder / "stack.txt", "w")  # noqa: SIM115 (open as long as the process)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)
    faulthandler.register(signal.SIGTERM, file=stack, all_threads=True, chain=True)
    # A process that this rank forks must not write there: the rank itself ends it with SIGTERM,
    # as a DataLoader does with its workers, and its stack would pass for the rank's.
    os.register_at_fork(after_in_child=functools.partial(faulthandler.unregister, signal.SIGTERM))
    faulthandler.enable()
