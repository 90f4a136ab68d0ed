"""Runs that fail before or beside their script: torchrun itself, and the agent it runs in."""

import re
import signal

import pytest

from course_utils import LaunchError
from nbtorchrun.launcher import client

# torchrun opens this file for a timer of its own.
NO_TIMER = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "/nowhere/timer"}
KILL_THE_FORKSERVER = (
    "import os, time\n"
    "if os.environ['RANK'] == '1':\n    os.kill(os.getppid(), NUMBER)\ntime.sleep(60)\n"
)
KILL_THE_AGENT = "import psutil\npsutil.Process().parent().parent().kill()\n"


def test_the_first_line_says_what_torchrun_raised(worker, launch):
    run = launch(worker("fine.py", ""), env=NO_TIMER, check=False)
    first, *rest = run.verdict.text.splitlines()
    assert run.verdict.kind == "launcher"
    said = r"torchrun could not run the script: \w+: .*No such file"
    assert re.match(said, first)
    assert "  Traceback (most recent call last):" in rest
    assert all(line.startswith("  ") for line in rest if line)


def test_an_agent_that_dies_or_is_late_is_a_sentence_and_the_next_run_works(
    worker, launch, monkeypatch
):
    run = launch(worker("kills.py", KILL_THE_AGENT), check=False)
    assert run.verdict.kind == "launcher"
    assert run.verdict.text == (
        "torchrun could not run the script: its helper process died (exit code -9); "
        "the next run starts a new one"
    )
    fine = worker("fine.py", "")
    with monkeypatch.context() as patch:
        patch.setattr(client, "START_TIMEOUT", 0.01)
        with pytest.raises(LaunchError, match=r"process was not ready after 0.01 s. Log: /"):
            launch(fine)
    assert launch(fine).ok


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_forkserver_that_is_lost_is_a_sentence_and_the_next_run_works(worker, launch, name):
    script = KILL_THE_FORKSERVER.replace("NUMBER", str(int(signal.Signals[name])))
    run = launch(worker("kills.py", script), check=False)
    assert run.verdict.kind == "launcher"
    assert run.verdict.text == (
        f"the process that warm ranks are forked from (the forkserver) ended ({name}), and its "
        "ranks with it; the next run starts a new one"
    )
    assert launch(worker("fine.py", "")).ok
