"""Hangs on GPUs: a rank spins until its GPU has ended a collective, and no log says so.

Gloo fills the same flight recorder as NCCL does: here an asynchronous collective of gloo, and a
rank that asks for its end again and again, stand for NCCL and `torch.cuda.synchronize()`.
"""

import json

import pytest

from nbtorchrun.diagnosis.calls import unended_call
from nbtorchrun.runs import Rank
from nbtorchrun.worker import unended

SPINS = """
import time, torch, torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from nbtorchrun.worker import calls, init, unended

init()
{recorder}
(log,) = calls._logs
unended.watch(log.folder, log.students)
if dist.get_rank() == 0:
    work = dist.all_reduce(torch.ones(4), async_op=True)  # it returns at once
    while not work.is_completed():
        pass
time.sleep(600)
"""
# Where the two back ends of that name write: since torch 2.15, "nccl" is nccl2.
RECORDERS = {
    "nccl": 'c10d._dump_nccl_trace = lambda *which: c10d._dump_fr_trace(*which, "gloo")',
    "nccl2": """real = c10d._dump_fr_trace
c10d._dump_fr_trace = lambda *which: real(*which[:3], "gloo" if which[3:] == ("nccl2",) else "")""",
}
ENTRY = {
    "state": "started",
    "retired": False,
    "profiling_name": "nccl:all_reduce",
    "collective_seq_id": 3,
    "p2p_seq_id": 0,
    "process_group": ("0", "default_pg"),
    "frames": [{"filename": "/torch/c10d.py", "line": 9}, {"filename": "/mine/a.py", "line": 7}],
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("recorder", "warm"), [("nccl", True), ("nccl", False), ("nccl2", True)])
def test_a_rank_that_spins_does_not_compute_and_the_verdict_names_what_has_not_ended(
    worker, launch, recorder, warm
):
    script = worker("spins.py", SPINS.format(recorder=RECORDERS[recorder].replace("\n", "; ")))
    run = launch(script, nproc=2, warm=warm, stall=5, timeout=50, check=False)
    assert run.verdict.kind == "hung"
    assert "for 5 s no rank computed" in run.verdict.text  # and not: stopped at its timeout
    assert "rank 1 never reached all_reduce" in run.verdict.headline
    assert "rank 0 waits in all_reduce #" in run.verdict.text
    assert "(workers/spins.py, line 11)" in run.verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "all_reduce #3"),
        ({"profiling_name": "nccl:all_reduce_barrier"}, "barrier #3"),
        ({"profiling_name": "nccl:_reduce_scatter_base"}, "reduce_scatter_tensor #3"),
        ({"profiling_name": "nccl2:reduce_scatter_single"}, "reduce_scatter_tensor #3"),
        ({"profiling_name": "nccl:recv 1<-0", "p2p_seq_id": 5}, "recv from rank 0"),
        ({"profiling_name": "nccl:send 1->2", "p2p_seq_id": 5}, "send to rank 2"),
        ({"state": "completed"}, "None"),
        ({"retired": True}, "None"),
    ],
)
def test_what_the_recorder_says_is_said_in_the_words_of_the_verdict(tmp_path, change, said):
    class Folder:
        path = tmp_path

    (tmp_path / "rank_0").mkdir()
    rank = Rank(0, Folder())
    found = unended.oldest([ENTRY | {"state": "completed"}, ENTRY | change], ("/mine",))
    (rank.dir / unended.NAME).write_text(json.dumps(found))
    call = unended_call(rank)
    assert str(call) == said
    if call:
        assert (call.place.file, call.place.line) == ("/mine/a.py", 7)
        assert not call.returned
