"""A timeout counts from the launch, and beside other tests cold ranks import for long."""

import pytest

from tests.launch.fault import START


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_timeout_says_where_each_rank_is(worker, launch, warm):
    source = START + "if rank == 1:\n    time.sleep(1000)\ndist.barrier()\n"
    run = launch(worker("hang.py", source), warm=warm, check=False, timeout=2 if warm else 20)
    assert run.verdict.kind == "hung"
    assert "rank 0 waits in barrier #1 (workers/hang.py, line 11)" in run.verdict.text
    assert "rank 1 is at workers/hang.py, line 10" in run.verdict.text
    assert "hang.py" in run.ranks[0].stack
    assert [rank.stdout for rank in run.ranks] == ["rank 0 begins\n", "rank 1 begins\n"]
