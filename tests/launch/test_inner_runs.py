"""A rank that starts torchrun itself: nothing of the inner run lands in the outer one."""

import pytest

INNER = """
import os, sys
import torch.distributed as dist
from nbtorchrun.worker import init, mark, report
init()
with mark("inner"):
    dist.barrier()
report(inner=dist.get_rank())
if "fails" in sys.argv:
    raise ValueError("inner")
"""
OUTER = """
import os, subprocess, sys
from nbtorchrun.worker import report
inner = os.path.join(os.path.dirname(__file__), "inner.py")
command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
done = subprocess.run([*command, inner, *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
said = [line for line in done.stdout.splitlines() if line.startswith("report")]
report(status=done.returncode, said=sorted(said))
"""
CHILDREN = """
import multiprocessing, subprocess, sys
from nbtorchrun.worker import report
report(by="rank")
fork = multiprocessing.get_context("fork").Process(target=report, kwargs={"by": "fork"})
fork.start()
fork.join()
code = "from nbtorchrun.worker import report; report(by='program')"
subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("fails", [False, True], ids=["well", "with an error"])
def test_torchrun_inside_a_rank_reports_to_itself(worker, launch, warm, fails):
    worker("inner.py", INNER)
    script = worker("outer.py", OUTER)
    arguments = ["fails"] * fails
    run = launch(script, *arguments, nproc=1, warm=warm, timeout=200, stall=100)
    said = [f"report rank {rank}: inner={rank}" for rank in range(2)]
    if not fails:  # the first of those that fail ends the others, before they report
        assert run.reports == [{"rank": 0, "status": 0, "said": said}]
    assert run.reports[0]["status"] == fails
    assert run.timeline() == []
    assert run.ranks[0].last("group") is None
    assert sorted(path.name for path in run.dir.glob("rank_*")) == ["rank_0"]


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_what_a_rank_starts_reports_for_that_rank(worker, launch, warm):
    run = launch(worker("children.py", CHILDREN), warm=warm)
    told = [{"by": "rank"}, {"by": "fork"}, {"by": "program"}]
    assert [rank.reports for rank in run.ranks] == [told, told]


MEETS = """
import os
import torch.multiprocessing as mp
from nbtorchrun.worker import report

def elsewhere(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29000 + rank), RANK=str(rank))
    report(met=rank)

if __name__ == "__main__":
    mp.spawn(elsewhere, nprocs=2)
"""


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_process_that_meets_others_by_hand_reports_for_its_rank(worker, launch, warm):
    run = launch(worker("meets.py", MEETS), nproc=1, warm=warm)
    assert sorted(run.series("met", rank=0)) == [0, 1]
