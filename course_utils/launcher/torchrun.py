"""One call of torchrun in this process."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch.distributed.run
from torch.distributed.elastic.multiprocessing import SignalException, api
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.multiprocessing import ProcessContext, ProcessExitedException

from course_utils.launcher import rendezvous  # noqa: F401 (makes itself known to torchrun)

GRACE = 1  # seconds
exitcodes: dict[int, int] = {}  # of the ranks of the current run that ended by themselves
ended_by_torchrun = False  # whether torchrun has begun to end the remaining ranks
# Torchrun would log a traceback of each rank's end. To format it, torch imports its compiler, which
# takes a second while the student waits. The verdict says more.
logging.getLogger(api.__name__).setLevel(logging.CRITICAL)


def run(arguments: list[str], stop: threading.Event) -> dict[str, Any]:
    """Run torchrun to its end, or until SIGTERM.

    Args:
        arguments: its command line.
        stop: set before a SIGTERM is sent, which may come before this call.

    Returns:
        `exitcodes`: by rank, of those that had ended by themselves when torchrun ended the rest;
        `stopped`: the signal that ended the run from outside, or None.
    """
    global ended_by_torchrun
    exitcodes.clear()
    ended_by_torchrun = False
    stopped = None
    # Torchrun's own handler. Torchrun sets it only when it starts ranks; a stop may come earlier.
    between_runs = signal.signal(signal.SIGTERM, api._terminate_process_handler)
    try:
        if stop.is_set():
            signal.raise_signal(signal.SIGTERM)
        torch.distributed.run.run(parsed(arguments))
    except ChildFailedError:
        pass  # the exit codes say it
    except SignalException as error:
        stopped = signal.Signals(error.sigval).name
    finally:
        signal.signal(signal.SIGTERM, between_runs)
    return {"exitcodes": exitcodes, "stopped": stopped}


def parsed(arguments: list[str]) -> Any:
    """Torchrun's options, from its command line alone: it would take more from PET_* variables."""
    pet = {name: value for name, value in os.environ.items() if name.startswith("PET_")}
    for name in pet:
        del os.environ[name]
    try:
        return torch.distributed.run.parse_args(arguments)
    finally:
        os.environ.update(pet)  # the ranks get them, as from any torchrun


# Torchrun reports the rank whose end it noticed first, but not always the others. The functions
# below wrap its private classes to note how each rank ended by itself, before torchrun ends the
# rest. They also give ranks that ignore SIGTERM only `GRACE` seconds before SIGKILL, not 30.


def note(codes: Iterable[int | None]) -> None:
    """Note the exit codes of the ranks, in order; None for a rank that still runs."""
    for rank, code in enumerate(codes):
        if code is not None and not ended_by_torchrun:
            exitcodes.setdefault(rank, code)


def watch_forked_ranks() -> None:
    """Note the exit codes of warm ranks: torch.multiprocessing ends the others when one fails."""
    join, join_for = ProcessContext.join, ProcessContext._join_procs_with_timeout

    def noting(self: ProcessContext, timeout: float | None = None, **named: Any) -> bool:
        codes = [process.exitcode for process in self.processes]
        note(codes)
        if timeout is not None and timeout < 0 and not any(codes):
            return False  # torch looks again: a rank that failed in between would not be noted
        try:
            return join(self, timeout, **named)
        except ProcessExitedException as error:
            exitcodes.setdefault(error.error_index, error.exit_code)
            raise

    ProcessContext.join = noting
    ProcessContext._join_procs_with_timeout = lambda self, timeout: join_for(
        self, min(timeout, GRACE)
    )


def watch_started_ranks() -> None:
    """Note the exit codes of cold ranks, just before torchrun ends those that still run."""
    close = api.SubprocessContext._close

    def noting(self: api.SubprocessContext, death_sig: signal.Signals, timeout: int = 30) -> None:
        global ended_by_torchrun
        handlers = sorted(self.subprocess_handlers.items())
        note(handler.proc.poll() for _, handler in handlers)
        ended_by_torchrun = True  # it closes twice, and the second time all have ended
        close(self, death_sig, min(timeout, GRACE))

    api.SubprocessContext._close = noting


def holding_sigterm(start: Callable[[Any], None]) -> Callable[[Any], None]:
    """Wrap `start`, which starts ranks: a SIGTERM that arrives during it is raised after it.

    An exception halfway would orphan the ranks that already run, because torchrun ends ranks only
    once all have started. Also, a request that breaks off would kill the forkserver.
    """

    def starting(self: Any) -> None:
        came: list[int] = []
        handler = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
        try:
            start(self)
        finally:
            signal.signal(signal.SIGTERM, handler)
        if came:
            signal.raise_signal(signal.SIGTERM)

    return starting


watch_forked_ranks()
watch_started_ranks()
for context in (api.MultiprocessContext, api.SubprocessContext):
    context._start = holding_sigterm(context._start)
