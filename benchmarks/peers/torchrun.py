"""A session of plain torchrun."""

import subprocess
import sys

from benchmarks.peers import HERE
from benchmarks.peers.work import serve

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run(task: str) -> None:
    """One call; what it writes to stderr is what its user reads."""
    done = subprocess.run(
        [*TORCHRUN, str(HERE / "script.py"), task], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


serve(run)
