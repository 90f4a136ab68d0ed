"""Scripts whose ranks may differ: in the groups they are in, and in whom they receive from."""

import os
import sys

import pytest

from tests.launch.fault import START

PAIR = START + "pair = dist.new_group([0, 1])\n"
OUTSIDE_A_GROUP = {
    "named": "dist.all_reduce(tensor, group=pair)",
    "by its place": "dist.all_reduce(tensor, dist.ReduceOp.SUM, pair)",
    "a message": "if rank:\n    dist.recv(tensor, 0, pair)\nelse:\n    dist.send(tensor, 1, pair)",
}


@pytest.mark.parametrize("call", OUTSIDE_A_GROUP.values(), ids=OUTSIDE_A_GROUP)
def test_a_rank_may_call_for_a_group_it_is_not_in(worker, launch, call):
    run = launch(worker("pair.py", PAIR + call + "\ndist.barrier()\n"), nproc=4)
    assert "does not belong to the given group" in run.ranks[3].stderr


@pytest.mark.parametrize("source", ["tensor", "tensor, None", "tensor, src=None"])
def test_a_rank_may_receive_from_any_other(worker, launch, source):
    body = f"if rank:\n    dist.send(tensor, 0)\nelse:\n    dist.recv({source})\n"
    launch(worker("any.py", START + body + "dist.barrier()\n"))


def test_the_parts_of_a_reduce_scatter_may_have_any_sizes(worker, launch):
    body = "parts = [torch.ones(2 + each) for each in range(world)]\n"
    body += "dist.reduce_scatter(torch.empty(2 + rank), parts)\n"
    launch(worker("uneven.py", START + body))


def test_the_default_group_may_be_named(worker, launch):
    body = "dist.barrier(dist.group.WORLD) if rank else dist.barrier()\ndist.all_reduce(tensor)\n"
    launch(worker("world.py", START + body))


WAITING = {
    "dist.recv(tensor, None)": "recv from any rank",
    "dist.recv(tensor, group=pair, group_src=0)": "recv from rank 1",
    "dist.recv(tensor, None, pair, group_src=0)": "recv from rank 1",
}


@pytest.mark.parametrize(("call", "said"), WAITING.items(), ids=WAITING)
def test_a_verdict_names_the_rank_a_message_is_awaited_from(worker, launch, call, said):
    body = f"pair = dist.new_group([1, 2])\nif rank == 2:\n    {call}\ntime.sleep(100)\n"
    run = launch(worker("waits.py", START + body), nproc=3, stall=2, check=False)
    assert f"rank 2 waits in {said} (workers/waits.py, line 11)" in run.verdict.text


def test_ranks_that_wait_in_two_groups_may_wait_for_one(worker, launch):
    body = """
pair = dist.new_group([1, 2])
if rank == 2:
    time.sleep(100)
dist.all_reduce(tensor, group=pair) if rank else dist.barrier()
"""
    run = launch(worker("late.py", START + body), nproc=3, stall=2, check=False)
    assert run.verdict.rank == 2
    assert "rank 2 never got to where the others are waiting" in run.verdict.text


def test_two_groups_of_the_same_ranks_entered_crosswise_are_found(worker, launch):
    body = """
one, other = dist.new_group([0, 1]), dist.new_group([0, 1])
for group in (one, other) if rank else (other, one):
    dist.all_reduce(tensor, group=group)
"""
    run = launch(worker("cross.py", START + body), nproc=2, stall=2, check=False)
    assert "waiting in different calls, so none of these can return" in run.verdict.text


LOOPS = """
import os
pair = dist.new_group([0, 1])
dist.barrier(pair)
seen = {}
for thread in map(int, os.listdir("/proc/self/task")):
    name = open(f"/proc/self/task/{thread}/comm").read().strip()
    way = os.sched_getscheduler(thread), os.getpriority(os.PRIO_PROCESS, thread)
    seen.setdefault(name, []).append(way)
report(loops=seen.pop("gloo_tcp_loop"), others=sum(seen.values(), []))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux schedules threads one by one")
@pytest.mark.parametrize("start", ["init()", "dist.init_process_group('gloo')"])
def test_the_loop_of_each_group_makes_way_for_all_other_threads(worker, launch, start):
    source = START.replace("init()", start) + LOOPS
    for told in launch(worker("loops.py", source), nproc=2).reports:
        assert told["loops"] == [[os.SCHED_BATCH, 10]] * 2  # the world's and the pair's
        assert {tuple(way) for way in told["others"]} == {(os.SCHED_OTHER, 0)}
