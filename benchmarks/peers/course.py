"""A session of the course's own `launch`, warm or cold."""

import sys

from benchmarks.peers import HERE
from benchmarks.peers.work import serve
from nbtorchrun.errors import LaunchError
from nbtorchrun.launcher.client import kept_agent
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path

WARM = sys.argv[1] == "warm"
if WARM:
    kept_agent()  # as a notebook's import of the package does, and goes on


def run(task: str) -> None:
    """One launch, with a stall as short as the other peers' patience here."""
    options = Options(nproc=2, warm=WARM, stall=5, show=False)
    outcome = launch_path(HERE / "script.py", [task], options)
    if not outcome.ok:
        raise LaunchError(str(outcome.verdict), outcome)


serve(run)
