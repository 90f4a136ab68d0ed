"""A run that is stopped by hand says what its ranks were doing."""

import os
import re
import signal
import threading
import time

import pytest

from course_utils import launch
from nbtorchrun.display import view
from nbtorchrun.errors import Stopped
from nbtorchrun.launcher import client
from tests.launch.fault import START

HANGS = START + "if rank == 1:\n    time.sleep(1000)  # here\ndist.barrier()\n"
TRAINS = START + "while True:\n    sum(range(1000))\n"
DIFFERS = START + "dist.all_reduce(torch.ones(3 if rank == 1 else 4))\ntime.sleep(1000)\n"


@pytest.fixture
def stop(monkeypatch):
    """Launch a script and interrupt it as Ctrl-C would, when its ranks have been up for a while."""

    class Interrupting(view.Screen):
        def __init__(self, run, seconds):
            self.run, self.seconds, self.up = run, seconds, 0.0

        def update(self):
            if not self.up and all("begins" in rank.stdout for rank in self.run.ranks):
                self.up = time.monotonic()
            if self.up and time.monotonic() > self.up + self.seconds:
                self.up += 1000
                signal.raise_signal(signal.SIGINT)

    def call(path, seconds=0.5, **options) -> Stopped:
        home = "nbtorchrun.launching.screen_for"
        monkeypatch.setattr(home, lambda run, options: Interrupting(run, seconds))
        with pytest.raises(Stopped) as caught:
            launch(path, timeout=60, **options)
        return caught.value

    return call


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_the_verdict_says_who_waited_where_and_for_whom(worker, stop, warm):
    seconds = 8 if warm else 20  # new Pythons import torch first
    stopped = stop(worker("hangs.py", HANGS), seconds=seconds, nproc=3, warm=warm)
    verdict = stopped.run.verdict
    assert verdict.kind == "stopped"
    assert re.fullmatch(
        r"you stopped the run after \d+ s: rank 1 had not reached barrier #1; "
        r"ranks 0 and 2 wait for it",
        verdict.headline,
    )
    assert (verdict.rank, verdict.line) == (1, 10)
    for part in (
        "rank 0 waits in barrier #1 (workers/hangs.py, line 11)",
        "rank 1 is at workers/hangs.py, line 10",
        "rank 1 never got to where the others are waiting",
    ):
        assert part in str(stopped)
    assert re.search(r"for the last \d+ s no rank computed, printed or reported", str(stopped))
    assert str(stopped).endswith("the run was stopped; its ranks have ended")
    assert "hangs.py" in stopped.run.ranks[1].stack
    assert [rank.stdout for rank in stopped.run.ranks] == [f"rank {n} begins\n" for n in range(3)]


def test_of_a_run_that_did_not_hang_no_rank_is_blamed(worker, stop):
    verdict = stop(worker("trains.py", TRAINS)).run.verdict
    assert verdict.kind == "stopped"
    assert verdict.rank is None
    assert re.fullmatch(r"you stopped the run after \d+ s", verdict.headline)
    assert "rank 0 is at workers/trains.py, line 1" in verdict.text
    assert "no rank computed" not in verdict.text


def test_another_mistake_is_found_all_the_same(worker, stop):
    verdict = stop(worker("differs.py", DIFFERS)).run.verdict
    assert verdict.kind == "mismatch"
    assert "rank 1: all_reduce of [3] torch.float32" in verdict.text
    assert "you stopped the run after" in verdict.text


def test_stopped_while_torch_is_imported_the_next_run_goes_on_with_that(worker, launch):
    client.close_kept_agent()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Stopped, match="before its ranks could start"):
        launch(worker("fine.py", "print('fine')"))
    agent = client.kept_agent()
    assert launch(worker("fine.py", "print('fine')")).ok
    assert client.kept_agent() is agent
