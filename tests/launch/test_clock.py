"""A clock that is set while ranks run changes nothing: processes are known by ticks since boot."""

import sys
import time

import psutil
import pytest

from nbtorchrun.display import view
from tests.launch.fault import START

HOUR = 3600.0
SET_BACK = START + f"real = time.time\ntime.time = lambda: real() - {HOUR}\n"
GOES_ON = SET_BACK + "time.sleep(1.5)\ndist.barrier()\n"
RAISES = SET_BACK + "if rank == 1:\n    raise ValueError('late')\ntime.sleep(60)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="macOS knows a process's start by the clock")
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_clock_that_is_set_ends_no_healthy_run(worker, launch, monkeypatch, warm):
    real, created = time.time, psutil.Process.create_time

    class ClockIsSet(view.Screen):
        def update(self):
            monkeypatch.setattr(time, "time", lambda: real() + HOUR)
            monkeypatch.setattr(psutil.Process, "create_time", lambda self: created(self) + HOUR)

    monkeypatch.setattr("nbtorchrun.launching.screen_for", lambda *_: ClockIsSet())
    run = launch(worker("goes_on.py", GOES_ON), warm=warm, check=False)
    assert run.ok, run.verdict
    run = launch(worker("raises.py", RAISES), warm=warm, check=False)
    assert (run.verdict.kind, run.verdict.rank) == ("raised", 1), run.verdict
