"""Launches a script: starts the ranks, shows them, and raises the verdict of a run that failed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbtorchrun import settings
from nbtorchrun.display.view import returned, screen_for
from nbtorchrun.errors import LaunchError
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Run


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
    """Run a script with torchrun and wait for its end.

    Args:
        script: its name in the folder of the scripts (see `configure`).
        arguments: passed to the script.
        check: raise `LaunchError` when the run fails; otherwise the verdict is in `run.verdict`.
        nproc: ranks on this machine.
        timeout: seconds after which the run is stopped and called hung.
        stall: seconds without any rank computing, printing or reporting after which the run is
            stopped and called hung.
        warm: fork the ranks from a process that has torch imported (0.1 s) instead of starting
            each as a new Python (some seconds).
        env: environment variables for the ranks, beside those of this process.
        show: print what the ranks say. Without it, an open page still has a line that says how
            many ranks run, for how long, and how that ended.
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
    run = launch_path(settings.script_path(script), map(str, arguments), options, screen_for)
    if not run.ok:
        if check:
            raise LaunchError(str(run.verdict), run)
        returned(run, options)
    return run
