"""Launches a worker file as on a machine with GPUs."""

from pathlib import Path

from course_utils import cells
from course_utils.files import script_path
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Run
from tests.standin import order

ON_GPUS = Path(__file__).resolve().parent / "on_gpus.py"


def on_gpus(file: str, *arguments: str, gpus: int, nproc: int, timeout: float = 150) -> Run:
    """Run a file of `workers/`; the Run, whether it went well or not.

    Raises:
        AssertionError: it went well, but only since gloo tells messages apart and NCCL does not.
    """
    for module in arguments:  # some scripts import what their argument names
        if f"{module}.py" in cells.sources():
            script_path(f"{module}.py")
    words = [str(gpus), str(script_path(file)), *arguments]
    run = launch_path(ON_GPUS, words, Options(nproc=nproc, timeout=timeout, stall=60))
    waiting = run.ok and order.stuck([rank.dir for rank in run.ranks])
    assert not waiting, f"NCCL could not match what the ranks gave it: {waiting}"
    return run
