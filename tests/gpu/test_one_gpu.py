"""What one GPU is enough for: launches, NCCL with one rank, gloo with two, and mixed precision."""

import pytest
import torch

from course_utils import proofs
from tools import demos

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS < 1, reason="this machine has no GPU that torch can use")
HEAD = """
import time, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from nbtorchrun.worker import device, init, report
"""


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_each_launch_begins_without_a_cuda_context_and_computes_on_the_gpu(worker, launch, warm):
    # A process that was forked from one with a CUDA context could not use the GPU at all.
    body = """
inherited = torch.cuda.is_initialized()
init()
total = torch.arange(1000.0, device=device()).sum()
report(inherited=inherited, total=total, place=str(device()), backend=dist.get_backend())
"""
    script = worker("on_the_gpu.py", HEAD + body)
    for _ in range(2):  # the second is forked from the same process as the first
        run = launch(script, nproc=1, warm=warm)
        assert run.ranks[0].reports == [
            {"inherited": False, "total": 499500.0, "place": "cuda:0", "backend": "nccl"}
        ]


def test_a_script_can_ask_for_gloo_where_there_is_a_gpu(worker, launch):
    body = 'init(backend="gloo")\nreport(backend=dist.get_backend())'
    assert launch(worker("asks_for_gloo.py", HEAD + body), nproc=1).series("backend") == ["gloo"]


def test_every_collective_of_nccl_works_with_one_rank(worker, launch):
    body = """
init()
ones, out = torch.ones(4, device=device()), torch.zeros(4, device=device())
calls = {
    "all_reduce": lambda: dist.all_reduce(out.copy_(ones)),
    "broadcast": lambda: dist.broadcast(out.copy_(ones), 0),
    "reduce": lambda: dist.reduce(out.copy_(ones), 0),
    "all_gather": lambda: dist.all_gather_into_tensor(out, ones),
    "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, ones),
    "all_to_all": lambda: dist.all_to_all_single(out, ones),
}
for name, call in calls.items():
    out.zero_()
    call()
    report(name=name, out=out)
"""
    run = launch(worker("one_rank.py", HEAD + body), nproc=1)
    assert run.series("out") == [[1.0] * 4] * 6


def test_two_ranks_share_a_gpu_over_gloo(worker, launch):
    # NCCL refuses two ranks on one GPU; gloo sums CUDA tensors through the host's memory.
    body = """
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())  # DDP has to make the ranks equal
replica = DDP(nn.Linear(4, 2).cuda(0), device_ids=[0])
replica(torch.full((3, 4), float(dist.get_rank()), device="cuda:0")).sum().backward()
report(gradient=replica.module.weight.grad, weight=replica.module.weight)
dist.destroy_process_group()
"""
    first, second = launch(worker("share.py", HEAD + body), nproc=2).reports
    assert first["gradient"] == second["gradient"] == [[1.5] * 4] * 2  # the mean of 0 and 3
    assert first["weight"] == second["weight"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision_trains_and_skips_the_step_that_overflows(worker, launch, dtype):
    body = f"""
init()
torch.manual_seed(0)
dtype, place = torch.{dtype}, device()
replica = DDP(nn.Linear(8, 8).to(place), device_ids=[place.index])
optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, enabled=dtype == torch.float16)
inputs = torch.randn(16, 8, device=place)
for step in range(20):
    old = replica.module.weight.detach().clone()
    with torch.autocast("cuda", dtype=dtype):
        loss = (replica(inputs) - inputs).float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss * (torch.inf if step == 5 and scaler.is_enabled() else 1)).backward()
    scaler.step(optimizer)
    scaler.update()
    moved = not torch.equal(old, replica.module.weight)
    report(loss=loss, moved=moved, scale=scaler.get_scale())
"""
    run = launch(worker("mixed.py", HEAD + body), nproc=1)
    overflows = [5] if dtype == "float16" else []
    assert [step for step, moved in enumerate(run.series("moved")) if not moved] == overflows
    assert run.series("scale")[-1] == (512.0 if overflows else 1.0)
    assert run.series("loss")[-1] < 0.9 * run.series("loss")[0]


def steps():
    """The launches that prove the demos of notebooks 03, 05, 06 and 07."""
    found = [
        demo for demo in demos.find_all().values() if demo.notebook[:2] in "03 05 06 07".split()
    ]
    return {step.file: step for demo in found for step in demo.proofs}.values()


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.file)
def test_what_the_notebooks_prove_holds_on_the_gpus_that_are_there(launch, step):
    # Ranks that do not get a GPU each run on the CPU, beside a GPU that they must leave alone.
    run = launch(step.file, *step.arguments, nproc=step.nproc, timeout=250, stall=120)
    proofs.add(run)
    assert run.ranks[0].last("group")["device"] == ("cuda" if step.nproc <= GPUS else "cpu")
