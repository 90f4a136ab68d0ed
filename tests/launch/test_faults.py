"""The conformance suite: for each fault, warm and cold, the verdict says what it has to say."""

import signal
import threading
import time

import pytest

from course_utils import LaunchError
from tests.launch.fault import START, Fault
from tests.launch.faults import FAULTS
from tests.launch.rough import FINE, ROUGH
from tests.launch.subtle import FIRST_OF_EACH, SUBTLE

# The first of each kind, if no other kind will do.
FIRSTS = {fault.kinds: fault for fault in reversed(FAULTS) if len(fault.kinds) == 1}.values()
ALL = [*FAULTS, *ROUGH, *SUBTLE]
WARM = [pytest.param(fault, 4, True, id=f"{fault.name}, warm") for fault in ALL]
ONCE_MORE = [*FIRSTS, *ROUGH, *FIRST_OF_EACH]
COLD = [pytest.param(fault, 2, False, id=f"{fault.name}, cold") for fault in ONCE_MORE]


@pytest.mark.parametrize(("fault", "nproc", "warm"), WARM + COLD)
def test_the_verdict_and_the_next_launch(worker, launch, fault: Fault, nproc, warm):
    options = {"nproc": nproc, "warm": warm, "check": False}
    if fault.waits:  # cold ranks import torch, and wait for each other, for some seconds
        options["stall"] = 2 if warm else 5
    start = time.monotonic()
    run = launch(worker("fault.py", fault.script), **options)
    assert time.monotonic() - start < 60
    verdict = run.verdict
    assert verdict is not None
    for part in fault.said:
        expected = part.format(file="fault.py", last=nproc - 1, world=nproc)
        assert expected in verdict.text, verdict
    assert verdict.kind in fault.kinds, verdict
    raised = [n for n in range(nproc) if (run.ranks[n].last("end") or {}).get("how") == "raised"]
    first = min(raised, default=0) if fault.rank is None else fault.rank
    assert verdict.rank == first, verdict
    if fault.line:
        assert verdict.line == fault.line, verdict
    assert fault.never_said not in verdict.text
    assert "Connection closed" not in verdict.text
    if not fault.whole:
        begun = [f"rank {n} begins" in run.ranks[n].stdout for n in range(nproc)]
        assert begun[fault.rank]
    assert launch(worker("fine.py", START)).ok


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("body", FINE.values(), ids=FINE)
def test_a_rough_script_that_does_nothing_wrong(worker, launch, body, warm):
    run = launch(worker("rough.py", START + body), warm=warm, check=False, stall=5)
    assert run.ok, run.verdict
    assert [rank.exitcode for rank in run.ranks] == [0, 0]


@pytest.mark.parametrize("folders", [2, 5])
def test_a_long_path_takes_no_call_out_of_the_notes(worker, launch, monkeypatch, tmp_path, folders):
    # The longer one is more than is noted of a call, and cut in the middle of a character.
    home = tmp_path.joinpath(*folders * ["路" * 80])
    monkeypatch.setenv("COURSE_HOME", str(home))
    body = "dist.all_reduce(torch.ones(3 if rank == 1 else 4))\n"
    run = launch(worker("deep.py", START + body), check=False, stall=2)
    assert run.verdict.kind == "mismatch"
    assert "rank 1: all_reduce of [3] torch.float32" in run.verdict.text
    assert ("(workers/deep.py, line 9)" in run.verdict.text) == (folders == 2)


def test_failure_raises_with_the_verdict_and_the_run(worker, launch):
    with pytest.raises(LaunchError, match="raised ZeroDivisionError") as caught:
        launch(worker("zero.py", "print('kept')\n1 / 0\n"))
    run = caught.value.run
    assert str(caught.value) == str(run.verdict)
    failed = run.ranks[run.verdict.rank]  # torchrun may end the other before it says anything
    assert failed.stdout == "kept\n"
    assert "ZeroDivisionError" in failed.stderr
    assert "bootstrap.py" not in failed.stderr
    assert run.dir.exists()


def test_an_interrupt_at_any_moment_ends_the_ranks(worker, launch):
    def interrupted(after: float) -> None:
        interrupt = signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
        threading.Timer(after, *interrupt).start()
        launch(long, nproc=8)

    fine, long = worker("fine.py", START), worker("long.py", START + "time.sleep(1000)\n")
    launch(fine)
    for moment in range(15):  # of the 0.05 s in which so many ranks start
        with pytest.raises(KeyboardInterrupt):
            interrupted(moment * 0.0035)
    assert launch(fine).ok
