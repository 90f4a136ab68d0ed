"""Many launches from one process leave nothing behind."""

import os
import tempfile

import psutil
import pytest

from nbtorchrun import settings
from nbtorchrun.launcher.client import kept_agent

SCRIPT = """
import sys
import torch.distributed as dist
from nbtorchrun.worker import init
init()
dist.barrier()
if len(sys.argv) > 1 and dist.get_rank() == 1:
    raise RuntimeError("as asked")
"""


def held() -> dict[str, object]:
    """What this process, its agent and the forkserver hold."""
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return {
        "processes": len(ours),
        "descriptors": sum(process.num_fds() for process in ours),
        "threads": sum(process.num_threads() for process in ours),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "run folders": sum(1 for _ in settings.runs().glob("*/*")),
    }


@pytest.mark.parametrize(("warm", "before", "times"), [(True, 20, 25), (False, 1, 2)])
def test_many_launches_of_which_some_fail_leave_nothing_behind(worker, launch, warm, before, times):
    script = worker("many.py", SCRIPT)

    def launch_again(fails: bool) -> None:
        assert launch(script, *["fail"] * fails, warm=warm, check=False).ok == (not fails)

    for _ in range(before):  # the folders of the last twenty failed runs are kept, and no more
        launch_again(fails=True)
    agent, held_before = kept_agent(), held()
    for number in range(times):
        launch_again(fails=warm and number % 5 == 0)
    assert kept_agent() is agent
    assert held() == held_before
