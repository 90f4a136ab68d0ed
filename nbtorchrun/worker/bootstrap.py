"""What torchrun starts in each rank of a launched run: guards first, then the student's script.

A warm rank is forked and calls `main` with its orders: `run_dir`, `script`, `arguments`,
`import_from`, `cwd`, `parent` and `environ`. A cold rank is a new Python that runs this file; the
one argument is the same as JSON, with `environ` null.
"""

import atexit
import contextlib
import ctypes
import json
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
import types
from pathlib import Path
from typing import Any

from nbtorchrun.worker import ending

FIXED_SEED = 67280421310721  # the seed of a torch that does not draw one
# Torchrun handles these, so a program that it starts has the default, whatever a shell ignored.
TORCHRUNS = signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT


def main(orders: dict[str, Any]) -> None:
    """Run the script of `orders` as a fresh Python would, and record how it ended."""
    rank, forked = os.getpid(), orders["environ"] is not None
    folder = Path(orders["run_dir"]) / f"rank_{os.environ['LOCAL_RANK']}"
    from nbtorchrun.worker import (
        guards,
    )

    guards.lead_process_group()
    guards.die_with_parent(orders["parent"])
    if forked:
        for number in (guards.WANT_STACKS, *TORCHRUNS):  # the forkserver handles the first
            signal.signal(number, signal.SIG_DFL)
        multiprocessing.current_process().name = "MainProcess"  # logs may show it
    folder.mkdir(mode=0o700, exist_ok=True)
    guards.dump_stack_on_request(folder)  # whoever reads the pid may ask for the stack at once
    guards.write_down_pid(folder)
    guards.redirect_output(folder)
    ending.begin(folder, rank)
    status = ending.recorded(lambda: run_script(orders, folder))
    if forked:
        finish_as_an_interpreter_does()
    if os.getpid() != rank and forked:  # the script forked, and this is its child: not torchrun's
        os._exit(status)
    if status != 0:
        sys.exit(status)


def argument(orders: dict[str, Any]) -> str:
    """`orders` as this file's argument in a command given to torchrun, which replaces macros."""
    return json.dumps(orders).replace("$", "$$")  # `$$` is its macro for `$`


def run_script(orders: dict[str, Any], folder: Path) -> None:
    """Set up what the script of `orders` may expect, and execute it as `__main__`."""
    from nbtorchrun.worker import guards

    with guards.modules_stay():
        from nbtorchrun.worker import calls, gloo  # the first imports torch

    if orders["environ"] is not None:
        forget_the_forkserver(orders["environ"])
    os.environ["NBTORCHRUN_RUN_DIR"] = orders["run_dir"]
    os.chdir(orders["cwd"])
    if sys.path and sys.path[0] == os.path.dirname(__file__):
        del sys.path[0]  # Python put this file's folder there; the script's belongs there
    sys.path[:0] = orders["import_from"]
    # Python trusts a compiled file if its source has the same size and was written in the same
    # second: after two quick edits of a file, a run would get the older version.
    sys.dont_write_bytecode = True
    calls.watch(folder / "calls.txt", orders["import_from"])
    gloo.lower_priority()  # also for a script that starts its group itself
    script = orders["script"]
    sys.argv = [script, *orders["arguments"]]
    execute(script)


def execute(script: str) -> None:
    """Execute a file as `__main__`. Its names stay to the end of the process, as Python's do.

    Were a thread of gloo the last to hold a group, it would have to wait for itself, and abort.
    """
    # The script gets its own `__main__`: what it pickles must not refer to this file's names.
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=script, __cached__=None)
    sys.modules["__main__"] = main_module
    with open(script, "rb") as source:
        code = compile(source.read(), script, "exec")
    exec(code, main_module.__dict__)


def forget_the_forkserver(environ: dict[str, str]) -> None:
    """Give a forked rank what a fresh process would have: environment, threads, random numbers.

    The forkserver set these up when it imported torch, before anybody asked for this run.
    """
    import torch
    import torch.distributed as dist

    own = environ | torchrun_environ()
    os.environ.clear()
    os.environ.update(own)
    multiprocessing.set_start_method(None, force=True)  # back to Python's own default
    threads = os.environ["OMP_NUM_THREADS"].split(",")[0].strip()  # OpenMP takes a list, too
    if threads.isdecimal() and int(threads):  # anything else OpenMP ignores
        torch.set_num_threads(int(threads))
    dist.set_debug_level_from_env()
    tempfile.tempdir = None  # TMPDIR is read again
    # A fork copies the forkserver's random state: every rank of every run would draw the same.
    if torch.initial_seed() != FIXED_SEED:
        torch.default_generator.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def torchrun_environ() -> dict[str, str]:
    """What torchrun itself put in this rank's environment."""
    kinds = ("", "LOCAL_", "GROUP_", "ROLE_")
    names = {f"{kind}{what}" for kind in kinds for what in ("RANK", "WORLD_SIZE")}
    names |= {"ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
    return {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith("TORCHELASTIC_")
    }


def finish_as_an_interpreter_does() -> None:
    """Wait for threads, run exit handlers, and close the connections to the other ranks.

    A process of multiprocessing skips the exit handlers, and torchrun keeps it until all ranks end.
    With its connections open, the others could not see that it has ended, and would wait for it.
    """
    from nbtorchrun import worker

    try:
        threading._shutdown()  # lets executors end their threads, then waits for all others
    except BaseException:  # as when an executor is just ending by itself: printed, not a failure
        traceback.print_exc()
    threading._threading_atexits.clear()  # multiprocessing calls `_shutdown` once more
    drop_a_silent_log()
    atexit._run_exitfuncs()
    worker._end_process_group()  # once more, if the script took that handler away
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the script may have closed it, or set it to None
            stream.flush()
    # multiprocessing ends with `os._exit`, which drops what a C library still holds back.
    ctypes.CDLL(None).fflush(None)
    ending.over()


def drop_a_silent_log() -> None:
    """Take away the exit handler with which Dynamo logs its compile times, if that log is off.

    It formats them first, with a package that it imports only then: 30 ms of a run of 100.
    """
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo and not dynamo.log.isEnabledFor(logging.INFO):
        atexit.unregister(dynamo.dump_compile_times)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
