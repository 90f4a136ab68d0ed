"""The batch file of docs/templates on a real Slurm: signal, requeue, resumption to the last bit."""

import re
import sys

import psutil
import pytest

from course_utils import paths
from course_utils.files import write_missing
from tests import slurm
from tests.needs import needs
from tests.waiting import wait_for

SBATCH = paths.ROOT / "docs" / "templates" / "slurm.sbatch"


def submit(cluster, tmp_path, name, *arguments, options=()):
    """Submit notebook 14's training with the batch file; gives the job's number and its log."""
    log = tmp_path / f"{name}.txt"
    script = paths.workers() / "survivor.py"
    words = [f"--output={log}", "--chdir", paths.ROOT, *options]
    training = [script, "--folder", tmp_path / name, "--steps", 60, *arguments]
    environ = {
        "COURSE_PYTHON": sys.executable,
        "PYTHONPATH": str(paths.ROOT),
        "GLOO_SOCKET_IFNAME": "card",
        "COURSE_DEVICE": "cpu",
    }
    job = cluster("sbatch", "--parsable", *words, SBATCH, *training, **environ)
    return job, log


def state(log):
    """The fingerprint of the training's state that rank 0 printed at the end."""
    return re.findall(r"^state (\w+)$", log.read_text(), re.MULTILINE)


def steps_of_all_ranks(log):
    """The steps that each of the four ranks has trained."""
    reported = re.findall(r"report rank (\d): step=(\d+)", log.read_text())
    last = {rank: int(step) for rank, step in reported}
    return min(last.values()) if len(last) == 4 else 0


def daemons() -> set[int]:
    """The pids of Slurm's and munge's daemons on this machine."""
    names = ("munged", "slurmctld", "slurmd")
    return {each.pid for each in psutil.process_iter(["name"]) if each.info["name"] in names}


@needs(slurm.PROGRAMS, why_not=slurm.why_not())
@pytest.mark.timeout(400)
def test_two_nodes_are_signalled_requeued_and_resume_to_the_last_bit(tmp_path):
    write_missing("survivor.py")
    before = daemons()
    with slurm.cluster() as cluster:
        job, whole = submit(cluster, tmp_path, "whole")
        cluster.wait_for(job, 120)
        assert len(state(whole)) == 1, whole.read_text()

        # The ranks train before their time runs out; torchrun hands on no signal before that.
        asked = ("--time=10", "--signal=B:USR1@60")
        paused = ("--pause", 1.0, "--save-every", 1000)
        job, log = submit(cluster, tmp_path, "stopped", *paused, options=asked)
        assert wait_for(lambda: log.exists() and steps_of_all_ranks(log) >= 3, 120)
        cluster("scontrol", "update", f"JobId={job}", "EndTime=now+90")
        assert wait_for(lambda: "back into the queue" in log.read_text(), 120), log.read_text()
        cluster("scontrol", "update", f"JobId={job}", "TimeLimit=10")  # once is enough here
        states = cluster.wait_for(job, 180)
        text = log.read_text()
        assert any(state.startswith("PENDING") for state in states), states
        stopped = re.findall(r"stopped and saved at step (\d+)", text)
        assert len(stopped) == 4, text  # all ranks of both nodes
        assert len(set(stopped)) == 1, text
        assert 0 < int(stopped[0]) < 60
        assert f"resumed at step {stopped[0]}" in text
        assert state(log)[-1] == state(whole)[0]
    assert daemons() <= before
