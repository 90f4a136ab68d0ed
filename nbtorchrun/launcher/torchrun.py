"""One call of torchrun in this process.

`elastic_launch` is the function with which the command torchrun itself ends: it gets torchrun's
options as a `LaunchConfig`, and what each rank runs.
"""

import logging
import sys
import uuid
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    SignalException,
    SubprocessContext,
)
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher import LaunchConfig, elastic_launch
from torch.multiprocessing import ProcessContext

from nbtorchrun.launcher import processes, rendezvous
from nbtorchrun.worker import bootstrap

MONITOR_INTERVAL = 0.01  # seconds; torchrun's default of 0.1 would double a short run
run_dir = Path()  # the folder of the current run
exitcodes: dict[int, int] = {}  # of its ranks that ended by themselves
# Torchrun would log a traceback of each rank's end. To format it, torch imports its compiler, which
# takes a second while the student waits. The verdict says more.
logging.getLogger(SubprocessContext.__module__).setLevel(logging.CRITICAL)


def run(request: dict[str, Any], parent: int) -> dict[str, Any]:
    """Run torchrun to its end, or until it is stopped (launcher/rendezvous.py).

    Args:
        request: what the notebook asked for (launcher/request.py).
        parent: the pid of the process that starts the ranks: a rank ends when it is gone.

    Returns:
        `exitcodes`: by rank, of those that had ended by themselves when torchrun ended the rest;
        `stopped`: the signal that ended the run from outside, or None.
    """
    global run_dir
    run_dir = Path(request["script"]["run_dir"])
    exitcodes.clear()
    stopped = None
    try:
        launch_ranks(request, parent)
    except ChildFailedError as error:
        note({failed.local_rank: failed.exitcode for failed in error.failures.values()})
    except SignalException as error:
        stopped = error.sigval.name
    return {"exitcodes": exitcodes, "stopped": stopped}


def launch_ranks(request: dict[str, Any], parent: int) -> None:
    """Start the ranks and wait until all have ended.

    Raises:
        ChildFailedError: a rank failed, and torchrun has ended the others.
        SignalException: the run was stopped, and torchrun has ended all ranks.
    """
    warm, orders = request["warm"], {**request["script"], "parent": parent, "environ": None}
    if warm:  # a forked rank has the forkserver's environment: it is sent the notebook's
        orders["environ"] = request["environ"]
        elastic_launch(config_for(request), bootstrap.main)(orders)
    else:
        command = ("-u", bootstrap.__file__, bootstrap.argument(orders))
        elastic_launch(config_for(request), sys.executable)(*command)


def config_for(request: dict[str, Any]) -> LaunchConfig:
    """What the options of the command torchrun would be."""
    # Several machines must choose the same id without talking to each other.
    script, alone = Path(request["script"]["script"]), request["nnodes"] == 1
    return LaunchConfig(
        min_nodes=request["nnodes"],
        max_nodes=request["nnodes"],
        nproc_per_node=request["nproc"],
        rdzv_backend=rendezvous.BACKEND,
        rdzv_endpoint=request["rdzv_endpoint"] or "",
        run_id=uuid.uuid4().hex if alone else script.name,
        role="default",  # as the command has it, and so ROLE_NAME in each rank
        max_restarts=0,
        monitor_interval=MONITOR_INTERVAL,
        start_method="forkserver",  # of warm ranks
        logs_specs=DefaultLogsSpecs(str(run_dir / "torchrun")),
    )


# Torchrun reports the rank whose end it noticed first, but not always the others. So two of its
# public methods are wrapped, to note how each rank ended by itself before torchrun ends the rest.


def note(codes: dict[int, int | None]) -> None:
    """Note the exit codes of ranks; None for a rank that still runs.

    Once a rank has failed, torchrun ends the others; once the run is over, the notebook does.
    """
    if not any(exitcodes.values()) and not processes.is_over(run_dir):
        exitcodes.update({rank: code for rank, code in codes.items() if code is not None})
        if any(exitcodes.values()):
            processes.declare_over(run_dir)


def join(self: ProcessContext, timeout: float | None = None, **named: Any) -> bool:
    """Note the exit codes of warm ranks, and then let torch end the others if one has failed."""
    codes = {rank: process.exitcode for rank, process in enumerate(self.processes)}
    note(codes)
    if timeout is not None and timeout < 0 and not any(codes.values()):
        return False  # torch looks again: a rank that failed in between would not be noted
    return torchs_join(self, timeout, **named)


def close(self: SubprocessContext, *how: Any, **named: Any) -> None:
    """Note the exit codes of cold ranks, and then let torch end those that still run."""
    note({rank: handler.proc.poll() for rank, handler in self.subprocess_handlers.items()})
    torchs_close(self, *how, **named)


torchs_join, torchs_close = ProcessContext.join, SubprocessContext.close
ProcessContext.join, SubprocessContext.close = join, close
