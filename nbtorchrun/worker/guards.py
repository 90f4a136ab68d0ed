"""What a rank sets up before the student's script: where output goes, and what ends the rank."""

import contextlib
import ctypes
import faulthandler
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
# Asks a rank for its stacks. Scripts handle SIGUSR1, as Slurm's preemption has them do, but not
# this one. macOS has no real-time signals: there it is one that is ignored unless it is handled.
WANT_STACKS = signal.SIGRTMIN + 10 if hasattr(signal, "SIGRTMIN") else signal.SIGINFO


@contextlib.contextmanager
def modules_stay() -> Iterator[None]:
    """Keep the garbage collector off the modules imported here, now and later.

    They are never garbage. Searching torch's objects during its import, and again when the
    interpreter ends, takes a third of the time of a rank that does little else. A collection in a
    forked rank would also touch, and so copy, all their pages. Nor need torch's libraries
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


def start_of(pid: int) -> float:
    """When a process started, on a clock that nobody can set: on Linux in ticks since boot.

    Raises:
        psutil.NoSuchProcess: there is no such process.
    """
    if sys.platform != "linux":
        return psutil.Process(pid).create_time()
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        raise psutil.NoSuchProcess(pid) from None
    return float(stat.rpartition(b")")[2].split()[19])  # the name before it may hold anything


def write_down_pid(folder: Path) -> None:
    """Make this rank known to the notebook's side; end it if the run is already over.

    The notebook's side writes `OVER`, then looks for ranks; this rank writes its pid, then looks
    for `OVER`. So one sees the other, even if torchrun has lost a rank that it began to start.
    """
    # With its start and session: once this rank has ended, another process may get its pid.
    me = os.getpid()
    (folder / "pid").write_text(f"{me} {os.environ['RANK']} {start_of(me)} {os.getsid(0)}")
    if (folder.parent / OVER).exists():
        os._exit(1)


def redirect_output(folder: Path) -> None:
    """Write stdout and stderr of this process to files of its own; there is no stdin."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        getattr(sys, name).flush()
        log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, descriptor)  # not only sys.stdout: native code and child processes print too
        os.close(log)
        # Unbuffered, like python -u: a rank that dies loses nothing of what it printed.
        raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115 (it stays open)
        text = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", write_through=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (it stays open)


def lead_process_group() -> None:
    """Lead a process group, so that one signal can end this rank and all it starts."""
    if os.getpgid(0) != os.getpid():  # torchrun may have made it a leader: a second call would fail
        os.setpgid(0, 0)


def die_with_parent(parent: int) -> None:
    """End this process when its parent is gone, even if the parent was killed.

    Args:
        parent: the parent's pid, which may be gone already.
    """
    if sys.platform == "linux":
        # The kernel sends this signal, so it comes even if the parent had no time to clean up.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # It does not come if the parent had gone before the call: then this process has another.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
    else:  # macOS has no such call
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpid(), signal.SIGKILL)  # the group: processes it started have no such thread


def _write_no_stack_on_sigterm() -> None:
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else it is the script's own handler
        faulthandler.unregister(signal.SIGTERM)


def dump_stack_on_request(folder: Path) -> None:
    """On `WANT_STACKS`, write all threads' stacks to `stack.txt`, even from inside a collective.

    On SIGTERM too, before it ends this process: torchrun sends it when another rank has failed.
    """
    # faulthandler writes from C, inside the signal handler. A handler in Python would have to wait
    # until the collective returns, and in a run that hangs it never does.
    stack = open(folder / "stack.txt", "w")  # noqa: SIM115 (open as long as the process)
    faulthandler.register(WANT_STACKS, file=stack, all_threads=True)
    faulthandler.register(signal.SIGTERM, file=stack, all_threads=True, chain=True)
    # A process that this rank forks must not write there. The rank may end it with SIGTERM, as a
    # DataLoader ends its workers, and the verdict would take the worker's stack for the rank's.
    os.register_at_fork(after_in_child=_write_no_stack_on_sigterm)
    faulthandler.enable()
