"""The agent process: it calls torchrun for each run the notebook asks for.

It has imported torch, and it keeps running. The ranks of a cold run are new Pythons, as torchrun
starts them. Those of a warm run are forked from a forkserver, a second process that has imported
torch. They are not forked from this one: a fork would copy a store's open connections, and locks
that this process's threads hold, but not the threads that would release them.

The notebook writes requests to this process's stdin, one JSON object per line, and reads replies
from a pipe of their own. The line `null` stops the current run. When stdin or this process's parent
ends, the notebook is gone: then this process ends, and so does everything it started.
"""

import contextlib
import importlib
import json
import multiprocessing
import multiprocessing.util
import os
import queue
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, NoReturn

from nbtorchrun.formats import signal_name
from nbtorchrun.launcher import processes
from nbtorchrun.worker import guards

SHORT_FOLDER = "/tmp"
LONGEST_FOLDER = 60  # bytes; a socket's name has at most 104, and multiprocessing adds 35

also_preloaded: list[str] = []  # modules that the forkserver imports beside those it names itself
_ending = threading.Lock()  # whoever holds it ends this process


def serve(warm: bool, answers: int, preload: tuple[str, ...] = ()) -> None:
    """Answer requests until stdin ends.

    Args:
        warm: also start the forkserver before the first request.
        answers: the descriptor that replies are written to.
        preload: what the forkserver imports beside the modules of `launcher/preload.py`.
    """
    also_preloaded.extend(preload)
    os.set_inheritable(answers, False)
    replies = os.fdopen(answers, "w", buffering=1)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    current: dict[str, Any] = {}
    stop = threading.Event()
    threading.Thread(target=_read, args=(requests, stop, current), daemon=True).start()
    threading.Thread(target=_watch_notebook, args=(os.getppid(), current), daemon=True).start()
    with guards.modules_stay():
        import torch.distributed.launcher  # noqa: F401 (for the forkserver too)
    if warm:  # before torchrun's own imports: the forkserver imports the rest meanwhile
        with forking():
            start_forkserver()
    from nbtorchrun.launcher import rendezvous, torchrun

    rendezvous.register(stop)
    if warm:
        wait_for_forkserver()
    replies.write(json.dumps({"ready": os.getpid()}) + "\n")
    asked = None  # the forkserver that has been asked to use large pages
    while True:
        request = requests.get()
        current.update(request)
        os.environ.clear()  # cold ranks, and torchrun itself, read this process's environment
        os.environ.update(request["environ"])
        try:
            if request["warm"]:
                start_forkserver()  # if it was killed, or was not needed until now
            outcome = torchrun.run(request, forkserver_pid() if request["warm"] else os.getpid())
        except BaseException:  # whatever happened, the notebook waits for a reply
            outcome = {"error": traceback.format_exc()}
        if request["warm"] and (how := forkserver_ended()):
            outcome["forkserver"] = how
        try:
            replies.write(json.dumps(outcome) + "\n")
        except BrokenPipeError:  # the notebook is gone
            _end(current)
        current.clear()
        # Now, while the student reads what the first run gave. A run that was not stopped has
        # forked ranks: the signal would end a forkserver that still imports.
        forks = forkserver_pid()
        if request["warm"] and outcome.get("stopped", "") is None and forks != asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(forks, guards.WANT_STACKS)  # its handler uses large pages
            asked = forks


def start_forkserver() -> None:
    """Start the process that warm ranks are forked from, unless it runs; it imports torch."""
    multiprocessing.set_forkserver_preload(["nbtorchrun.launcher.preload"])
    use_a_short_path()
    os.environ["NBTORCHRUN_AGENT"] = str(os.getpid())
    os.environ["NBTORCHRUN_PRELOAD"] = ",".join(also_preloaded)
    forkserver.ensure_running()


def use_a_short_path() -> None:
    """Keep the forkserver's socket in /tmp if TMPDIR is too long for the name of a socket."""
    if len(tempfile.gettempdir()) > LONGEST_FOLDER and os.path.isdir(SHORT_FOLDER):
        chosen, tempfile.tempdir = tempfile.tempdir, SHORT_FOLDER
        multiprocessing.util.get_temp_dir()  # made once, and then kept
        tempfile.tempdir = chosen


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Let multiprocessing fork the forkserver from this process instead of starting a new Python.

    A new Python would have to import torch again, and the student would wait two seconds longer for
    the first run. This is safe only before the first run: torchrun leaves threads behind, and a
    fork copies the locks that they hold, but not the threads.
    """
    resource_tracker.ensure_running()  # it needs no torch: start it the usual way
    start_new = multiprocessing.util.spawnv_passfds

    def fork(_: str, command: list[str], descriptors: list[int]) -> int:
        if pid := os.fork():
            return pid
        multiprocessing.util.spawnv_passfds = start_new
        become_forkserver(command[-1], descriptors)

    multiprocessing.util.spawnv_passfds = fork
    try:
        yield
    finally:
        multiprocessing.util.spawnv_passfds = start_new


def become_forkserver(code: str, descriptors: list[int]) -> NoReturn:
    """Continue a fork as if it were `python -c code` with only these descriptors open."""
    # An open copy of a pipe would hide from its reader that the writer has ended.
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in descriptors:
            with contextlib.suppress(OSError):  # the one that the listing itself used
                os.close(int(name))
    importlib.reload(forkserver)  # its module state says that a forkserver is being started
    try:
        exec(code, {})
    except SystemExit:
        os._exit(0)  # not sys.exit: the exit handlers that the fork copied are the agent's
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def forkserver_pid() -> int | None:
    """The process that warm ranks are forked from; None if there has been none."""
    return forkserver._forkserver._forkserver_pid  # multiprocessing has no public way to ask


def forkserver_ended() -> str:
    """How the forkserver ended, as `exit status 1`; '' while it lives."""
    forks = forkserver_pid()
    with contextlib.suppress(ChildProcessError):
        ended = forks and os.waitid(os.P_PID, forks, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended and ended.si_code == os.CLD_EXITED:
            return f"exit status {ended.si_status}"
        return signal_name(ended.si_status) if ended else ""
    return ""


def wait_for_forkserver() -> None:
    """Wait until the forkserver has done its imports: it forks nothing before."""
    first = multiprocessing.get_context("forkserver").Process(target=int)
    first.start()
    first.join()


def _read(
    requests: queue.Queue[dict[str, Any]], stop: threading.Event, current: dict[str, Any]
) -> None:
    """Queue the notebook's requests; when the notebook is gone, end the ranks and this process."""
    # Not sys.stdin: this thread locks it while it waits, and a fork would wait for that lock.
    for line in os.fdopen(0, closefd=False):
        if request := json.loads(line):
            stop.clear()
            requests.put(request)
        else:
            stop.set()
    _end(current)


def _watch_notebook(notebook: int, current: dict[str, Any]) -> None:
    """End all when the notebook is gone, even if a fork of it keeps this process's stdin open."""
    while os.getppid() == notebook:
        time.sleep(0.5)
    _end(current)


def _end(current: dict[str, Any]) -> NoReturn:
    """End the ranks of the current run, if there is one, and this process."""
    _ending.acquire()  # for good: another thread must not exit while this one looks for strays
    if script := current.get("script"):
        run_dir = Path(script["run_dir"])
        processes.kill_ranks(run_dir)
        processes.kill_strays(run_dir)
    shutil.rmtree(multiprocessing.util.get_temp_dir(), ignore_errors=True)  # its socket's folder
    os._exit(0)  # from this thread, sys.exit would end only the thread
