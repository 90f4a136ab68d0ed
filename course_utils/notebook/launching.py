"""Launches a worker file: writes what is missing, starts the ranks, and shows them."""

from pathlib import Path
from typing import Any

from course_utils.display.view import screen_for
from course_utils.errors import LaunchError
from course_utils.launcher.options import Options, takes_options
from course_utils.launcher.running import launch_path
from course_utils.notebook.files import script_path
from course_utils.runs import Run


@takes_options
def launch(script: str | Path, *arguments: Any, check: bool = True, **options: Any) -> Run:
    """Run a worker file with torchrun and wait for its end.

    Args:
        script: a file of `workers/`; if it is missing, it is written from the notebooks.
        arguments: passed to the script.
        check: raise `LaunchError` when the run fails; otherwise the verdict is in `run.verdict`.
        options: see `course_utils.launcher.options.Options`: nproc, timeout, stall (seconds),
            warm, env, show, name, nnodes, rdzv_endpoint.

    Raises:
        LaunchError: the run failed; its text says which rank, where and why.
        InputError: an option or the file name is invalid; nothing was started.
        TypeError: there is no option of that name.
    """
    run = launch_path(script_path(script), map(str, arguments), Options(**options), screen_for)
    if check and not run.ok:
        raise LaunchError(str(run.verdict), run)
    return run
