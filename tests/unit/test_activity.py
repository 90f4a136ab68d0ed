"""Whether the ranks of a run do anything is told from readings that are rounded to ticks."""

from itertools import cycle

import psutil
import pytest

from nbtorchrun.launcher import activity
from nbtorchrun.launcher.folder import RunFolder
from nbtorchrun.runs import Rank, Run


@pytest.fixture
def quiet_after(monkeypatch):
    """Seconds of quiet when the one rank's CPU seconds, read once a second, were `readings`."""

    def call(readings, fetched=0) -> float:
        clock = [0.0]
        read = iter(readings)
        monkeypatch.setattr(activity.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(activity, "_cpu_seconds", lambda process: next(read))
        monkeypatch.setattr(activity, "_bytes_read", lambda process: fetched * clock[0])
        me = {0: psutil.Process()}
        monkeypatch.setattr(activity.processes, "begun", lambda folder: me)
        monkeypatch.setattr(activity.processes, "rank_processes", lambda folder: me)
        monkeypatch.setattr(activity, "_tree", lambda process: [process])
        folder = RunFolder("quiet")
        watched = activity.Activity(Run("quiet", "", folder, [Rank(0, folder)]))
        for _ in readings:
            clock[0] += 1.01
            quiet = watched.quiet()
        return quiet

    return call


def test_readings_that_only_go_up_and_down_are_no_work(quiet_after):
    ticks = cycle([0.0, 0.03, 0.01, -0.02, 0.02])
    assert quiet_after([1.0 + next(ticks) for _ in range(30)]) > 20


def test_a_little_work_each_second_is_work(quiet_after):
    assert quiet_after([1.0 + 0.03 * second for second in range(30)]) == 0


def test_a_rank_that_waits_for_its_disk_is_at_work(quiet_after):
    assert quiet_after([1.0] * 30, fetched=4096) == 0
    assert quiet_after([1.0] * 30) > 20
