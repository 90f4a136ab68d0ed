"""`time_collective` of notebook 00: which trials count, and whose clock."""

import pytest

SCRIPT = """
import time
import torch
import torch.distributed as dist
from timing import time_collective
from course_utils.worker import init, report

init()
rank = dist.get_rank()
pauses = iter({pauses})
calls = []

def collective(tensor):
    calls.append(tensor)
    time.sleep(next(pauses))

tensor = torch.zeros(3)
seconds = time_collective(collective, tensor, {options})
report(seconds=seconds, calls=len(calls), same_tensor=all(each is tensor for each in calls))
"""


@pytest.fixture
def timed(worker, launch):
    """What each of three ranks reports of a collective that takes `pauses` in turn."""

    def run(pauses, options=""):
        name = worker("timing_case.py", SCRIPT.format(pauses=pauses, options=options))
        return launch(name, nproc=3).reports

    return run


@pytest.mark.timeout(60)
def test_every_rank_has_the_same_number_of_the_slowest_rank(timed):
    reports = timed("[0.1 * (rank == 1)] * 25")
    assert len({report["seconds"] for report in reports}) == 1
    assert reports[0]["seconds"] >= 0.1


@pytest.mark.timeout(60)
def test_five_calls_warm_up_and_twenty_count(timed):
    for report in timed("[0.0] * 25"):
        assert report["calls"] == 25
        assert report["same_tensor"]


@pytest.mark.timeout(60)
def test_slow_warm_up_and_one_slow_trial_do_not_count(timed):
    reports = timed("[0.5, 0.5] + [0.01] * 4 + [0.5]", options="warmup=2, trials=5")
    assert all(0.01 <= report["seconds"] < 0.5 for report in reports)


@pytest.mark.timeout(60)
def test_waiting_for_a_late_rank_does_not_count(worker, launch):
    name = worker(
        "timing_late.py",
        """
import time
import torch
import torch.distributed as dist
from timing import time_collective
from course_utils.worker import init, report

init()
time.sleep(0.5 * (dist.get_rank() == 1))
report(seconds=time_collective(dist.all_reduce, torch.zeros(3), warmup=0, trials=1))
""",
    )
    assert all(report["seconds"] < 0.5 for report in launch(name, nproc=2).reports)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("options", ["trials=0", "warmup=-1"])
def test_numbers_that_cannot_be_are_refused(worker, launch, options):
    name = worker("timing_case.py", SCRIPT.format(pauses="[0.0]", options=options))
    failed = launch(name, nproc=1, check=False)
    assert "ValueError: trials must be at least 1 and warmup 0" in str(failed.verdict)
