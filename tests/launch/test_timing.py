"""`time_collective` of notebook 00: which trials count, and whose clock."""

import pytest

SCRIPT = """
import time
import torch
import torch.distributed as dist
from timing import time_collective
from nbtorchrun.worker import init, report

init()
rank = dist.get_rank()
pauses = iter({pauses})
calls = []

def collective(tensor):
    calls.append(tensor)
    dist.all_reduce(tensor)  # waits for every rank
    time.sleep(next(pauses))

tensor = torch.zeros(3)
time.sleep({late} * (rank == 1))
seconds = time_collective(collective, tensor, {options})
report(seconds=seconds, calls=len(calls), same_tensor=all(entry is tensor for entry in calls))
"""


@pytest.fixture
def timed(worker, launch):
    """What each of three ranks reports of a collective that takes `pauses` in turn."""

    def run(pauses, options="", late=0):
        source = SCRIPT.format(pauses=pauses, options=options, late=late)
        name = worker("timing_case.py", source)
        return launch(name, nproc=3).reports

    return run


def test_every_rank_has_the_same_number_of_the_slowest_rank(timed):
    # By default 5 calls warm up and 20 count.
    reports = timed("[0.1 * (rank == 1)] * 25")
    assert len({report["seconds"] for report in reports}) == 1
    assert reports[0]["seconds"] >= 0.1
    assert [report["calls"] for report in reports] == [25] * 3
    assert all(report["same_tensor"] for report in reports)


def test_the_slowest_rank_of_each_trial_counts_where_the_ranks_take_turns(timed):
    reports = timed("[0.1 * (trial % 3 == rank) for trial in range(12)]", "warmup=3, trials=9")
    assert all(report["seconds"] >= 0.1 for report in reports)


def test_slow_warm_up_one_slow_trial_and_a_late_rank_do_not_count(timed):
    pauses = "[2, 2] + [0.01] * 4 + [2]"
    reports = timed(pauses, options="warmup=2, trials=5")
    assert all(0.01 <= report["seconds"] < 2 for report in reports)
    late = timed("[0.01]", options="warmup=0, trials=1", late=4)
    assert all(report["seconds"] < 2 for report in late)


@pytest.mark.parametrize("options", ["trials=0", "warmup=-1"])
def test_numbers_of_trials_that_make_no_sense_are_refused(worker, launch, options):
    name = worker("timing_case.py", SCRIPT.format(pauses="[0.0]", options=options, late=0))
    failed = launch(name, nproc=1, check=False)
    assert "ValueError: trials must be at least 1 and warmup 0" in str(failed.verdict)
