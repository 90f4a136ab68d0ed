"""What torchrun starts in each rank of a launched run: guards first, then the student's script.

Torchrun calls it with one argument, the rank's orders: base64 of a JSON object with
`run_dir`, `script`, `arguments`, `import_from`, `cwd`, `parent`, and in a warm rank `environ`.
"""

import atexit
import base64
import functools
import json
import multiprocessing
import os
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LAST_WORDS = 0.2  # seconds
FIXED_SEED = 67280421310721  # the seed of a torch that does not draw one


def main(orders: dict[str, Any]) -> None:
    """Run the script of `orders` as a fresh Python would, and record how it ended."""
    folder = Path(orders["run_dir"]) / f"rank_{os.environ['LOCAL_RANK']}"
    from course_utils.worker import guards

    # Before anything that takes time: from here on, this process cannot outlive its parent.
    guards.lead_process_group()
    guards.die_with_parent(orders["parent"])
    folder.mkdir(mode=0o700, exist_ok=True)
    guards.write_down_pid(folder)
    guards.redirect_output(folder)
    guards.dump_stack_on_request(folder)
    with guards.modules_stay():
        from course_utils.worker import calls, gloo  # the first imports torch

    forked = orders["environ"] is not None
    if forked:
        forget_the_forkserver(orders["environ"])
    os.environ["COURSE_RUN_DIR"] = orders["run_dir"]
    os.chdir(orders["cwd"])
    if sys.path and sys.path[0] == os.path.dirname(__file__):
        del sys.path[0]  # Python put this file's folder there; the script's belongs there
    sys.path[:0] = orders["import_from"]
    # Python trusts a compiled file if its source has the same size and was written in the same
    # second: after two quick edits of a file, a run would get the older version.
    sys.dont_write_bytecode = True
    calls.watch(folder / "calls.txt", orders["import_from"])
    gloo.make_way()  # also for a script that starts its group itself
    status = run_script(orders["script"], orders["arguments"])
    if forked:
        finish_as_an_interpreter_does()
    if status != 0:
        sys.exit(status)


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
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.set_debug_level_from_env()
    # A fork copies the forkserver's random state: every rank of every run would draw the same.
    if torch.initial_seed() != FIXED_SEED:
        torch.default_generator.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def torchrun_environ() -> dict[str, str]:
    """What torchrun itself put in this rank's environment."""
    prefixes = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_SIZE", "MASTER_", "TORCHELASTIC_")
    names = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(prefixes) or name in names
    }


def run_script(script: str, arguments: list[str]) -> int:
    """Execute `script` as `__main__`; return its exit status and record how it ended."""
    from course_utils.worker import _emit

    sys.argv = [script, *arguments]
    # The script gets its own `__main__`: what it pickles must not refer to this file's names.
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=script, __cached__=None)
    sys.modules["__main__"] = main_module
    thread_errors: list[BaseException] = []
    threading.excepthook = functools.partial(note_thread_error, thread_errors)
    try:
        with open(script, "rb") as source:
            code = compile(source.read(), script, "exec")
        exec(code, main_module.__dict__)
        if thread_errors:  # the script went on, but its thread did not do its work
            raise thread_errors[0]
    except SystemExit as stop:
        status = exit_status(stop)
        _emit("end", {"how": "exited", "status": status, "said": description(stop)})
        return status
    except BaseException as error:
        _emit("end", {"how": "raised", **description(error)})
        print(formatted(error), file=sys.stderr)
        # As soon as one rank is gone, torchrun ends the others. First let them record their own
        # failures, and don't let them fail just because this rank is gone.
        time.sleep(LAST_WORDS)
        return 1
    _emit("end", {"how": "finished"})
    return 0


def note_thread_error(errors: list[BaseException], raised: Any) -> None:
    """Record an exception that ended a thread; Python would only print it."""
    from course_utils.worker import _emit

    if raised.exc_type is not SystemExit:
        errors.append(raised.exc_value)
        _emit("thread", description(raised.exc_value))
        print(f"in thread {raised.thread.name}: {formatted(raised.exc_value)}", file=sys.stderr)


def exit_status(stop: SystemExit) -> int:
    """The process's exit status for `sys.exit(...)`, by Python's own rules."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def formatted(error: BaseException) -> str:
    """The traceback as Python prints it, without the frames of this package."""
    whole = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = whole
    while part:  # and the exceptions that led to this one
        part.stack = traceback.StackSummary.from_list(not_ours(part.stack))
        part = part.__cause__ or part.__context__
    return "".join(whole.format())


def not_ours(stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames that are not this package's."""
    return [frame for frame in stack if os.path.dirname(frame.filename) != HERE]


def description(error: BaseException) -> dict[str, Any]:
    """`error` as the verdict needs it: type, message, frames, and what lies behind it."""
    frames = [
        {"file": frame.filename, "line": frame.lineno, "function": frame.name}
        for frame in not_ours(traceback.extract_tb(error.__traceback__))
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append({"file": error.filename, "line": error.lineno, "function": "<module>"})
    message = "\n".join([str(error), *getattr(error, "__notes__", [])])  # as Python prints it
    name, behind = type(error).__name__, []
    while error := error.__cause__ or error.__context__:  # a lost connection under another name
        behind.append(str(error))
    return {"type": name, "message": message, "frames": frames, "behind": behind}


def finish_as_an_interpreter_does() -> None:
    """Wait for threads, run exit handlers, and close the connections to the other ranks.

    A process of multiprocessing skips the exit handlers, and torchrun keeps it until all ranks end.
    With its connections open, the others could not see that it has ended, and would wait for it.
    """
    import torch.distributed as dist

    try:
        threading._shutdown()  # lets executors end their threads, then waits for all others
    except BaseException:  # as when an executor is just ending by itself: printed, not a failure
        traceback.print_exc()
    threading._threading_atexits.clear()  # multiprocessing calls `_shutdown` once more
    atexit._run_exitfuncs()
    if dist.is_initialized():
        dist.destroy_process_group()
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(base64.b64decode(sys.argv[1])))
