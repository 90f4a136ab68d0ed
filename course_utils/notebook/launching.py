"""Launches a worker file: writes what is missing, starts the ranks, and shows them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_utils.display.view import screen_for
from course_utils.errors import LaunchError
from course_utils.launcher.options import Options
from course_utils.launcher.running import launch_path
from course_utils.notebook.files import script_path
from course_utils.runs import Run


def launch(
    script: str | Path,
    *arguments: Any,
    check: bool = True,
    nproc: int = Options.nproc,
    timeout: float = Options.timeout,
    stall: float = Options.stall,
    warm: bool = Options.warm,
    env: Mapping[str, Any] | None = Options.env,
    show: bool = Options.show,
    name: str = Options.name,
    nnodes: int = Options.nnodes,
    rdzv_endpoint: str | None = Options.rdzv_endpoint,
) -> Run:
    """Run a worker file with torchrun and wait for its end.

    Args:
        script: a file of `workers/`; if it is missing, it is written from the notebooks.
        arguments: passed to the script.
        check: raise `LaunchError` when the run fails; otherwise the verdict is in `run.verdict`.
        nproc: ranks on this machine.
        timeout: seconds after which the run is stopped and called hung.
        stall: seconds without any rank computing, printing or reporting after which the run is
            stopped and called hung.
        warm: fork the ranks from a process that has torch imported (0.1 s) instead of starting
            each as a new Python (some seconds).
        env: environment variables for the ranks, beside those of this process.
        show: print what the ranks say.
        name: what the notebook calls the Run.
        nnodes: number of machines; the same call is made on each of them.
        rdzv_endpoint: where they meet, as `host:port`.

    Raises:
        LaunchError: the run failed; its text says which rank, where and why.
        InputError: an option or the file name is invalid; nothing was started.
    """
    options = Options(
        nproc=nproc,
        timeout=timeout,
        stall=stall,
        warm=warm,
        env=env,
        show=show,
        name=name,
        nnodes=nnodes,
        rdzv_endpoint=rdzv_endpoint,
    )
    run = launch_path(script_path(script), map(str, arguments), options, screen_for)
    if check and not run.ok:
        raise LaunchError(str(run.verdict), run)
    return run
