"""Launches a worker file: writes what is missing, starts the ranks, and shows them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_utils.display.view import screen_for
from course_utils.errors import LaunchError
from course_utils.launcher import launch_path
from course_utils.launcher.options import Options
from course_utils.notebook.files import script_path
from course_utils.runs import Run


def launch(
    script: str | Path,
    *arguments: Any,
    nproc: int = 2,
    timeout: float = 120,
    stall: float = 30,
    warm: bool = True,
    check: bool = True,
    env: Mapping[str, Any] | None = None,
    show: bool = True,
    name: str = "run",
    nnodes: int = 1,
    rdzv_endpoint: str | None = None,
) -> Run:
    """Run a worker file with torchrun and wait for its end.

    Args:
        script: a file of `workers/`; one that is not there is written from the notebooks.
        arguments: passed to the script.
        nproc: number of ranks.
        timeout: seconds after which the run is stopped and called hung.
        stall: seconds without any rank computing, printing or reporting after which the run is
            stopped and called hung.
        warm: fork the ranks from a process that has torch imported (0.1 s) instead of starting
            each as a new Python (some seconds).
        check: raise `LaunchError` when the run fails; else the verdict is in `run.verdict`.
        env: environment variables for the ranks, beside those of this process.
        show: print what the ranks say.
        name: how the notebook calls the Run.
        nnodes: number of machines; the same call is made on each of them.
        rdzv_endpoint: where they meet, as `host:port`.

    Raises:
        LaunchError: the run failed; its text says which rank, where and why.
        InputError: a number of ranks, a timeout or a file name that cannot be; nothing was started.
    """
    options = Options(nproc, timeout, stall, warm, env, show, name, nnodes, rdzv_endpoint)
    run = launch_path(script_path(script), map(str, arguments), options, screen_for)
    if check and not run.ok:
        raise LaunchError(str(run.verdict), run)
    return run
