"""The stand-in sees each kind of mistake, in a script that is wrong on GPUs and right on a CPU."""

import pytest

from tests.standin.launching import on_gpus

HEAD = """
import os, time
import torch
import torch.distributed as dist
from nbtorchrun.worker import device, init, report
"""
RIGHT = """
init()
rank, place = dist.get_rank(), device()
assert (dist.get_backend(), place) == ("nccl", torch.device("cuda", rank))
layer = torch.nn.Linear(4, 4).to(place)
ddp = torch.nn.parallel.DistributedDataParallel(layer, device_ids=[rank])
start = time.perf_counter()
ddp(torch.randn(3, 4, device=place)).sum().backward()
torch.cuda.synchronize()
took = time.perf_counter() - start
total = torch.tensor([rank + 1.0], device=place)
work = dist.all_reduce(total, async_op=True)
work.wait()
half = dist.new_group([0])
average = torch.full((2,), float(rank), device=place)
dist.all_reduce(average, dist.ReduceOp.AVG)
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, rank)
start = time.perf_counter()
total.to("cpu")
took += time.perf_counter() - start  # the copy has waited for the GPU
with torch.device("meta"):
    assert torch.nn.Linear(4, 4).weight.is_meta
with place:
    assert torch.ones(4).device == place
at = str(layer.weight.grad.device)
report(total=total.item(), average=average.tolist(), everyone=everyone, at=at)
"""
# What is wrong, the script, and what the verdict then says.
WRONG = {
    "a CPU tensor in an operation on a GPU": (
        "init()\n(torch.ones(3, device=device()) + torch.ones(3)).sum()",
        "found at least two devices, cpu and cuda:",
    ),
    "tensors of two GPUs": (
        "init()\ntorch.cat([torch.ones(3, device='cuda:0'), torch.ones(3, device='cuda:1')])",
        "found at least two devices, cuda:0 and cuda:1",
    ),
    "a CPU tensor in a collective": (
        "init()\ndist.all_reduce(torch.ones(3))",
        "No backend type associated with device type cpu",
    ),
    "a CPU tensor in a message": (
        "init()\nif dist.get_rank():\n    dist.recv(torch.ones(3), 0)\nelse:\n"
        "    dist.send(torch.ones(3), 1)",
        "No backend type associated with device type cpu",
    ),
    "a device that was not set": (
        "dist.init_process_group('nccl')\ndist.all_gather_object([None] * 2, 1)",
        "Duplicate GPU detected",
    ),
    "a file loaded to another rank's GPU": (
        "init()\npath = os.path.join(os.environ['NBTORCHRUN_RUN_DIR'], 'saved.pt')\n"
        "if dist.get_rank() == 0:\n    torch.save([torch.ones(3, device=device())], path)\n"
        "dist.barrier()\ntorch.load(path)",
        "torch.load to cuda:0, the GPU of another rank",
    ),
    "a device that was only named": (
        "place = device()\ndist.init_process_group('nccl', device_id=place)\n"
        "dist.all_reduce(torch.ones(3, device=place))",
        "set_device(LOCAL_RANK) first",
    ),
    "two ranks on one GPU": (
        "init()\ndist.all_reduce(torch.ones(3, device='cuda:0'))",
        "Duplicate GPU detected",
    ),
    "a GPU that is not there": (
        "init()\ntorch.ones(3, device='cuda:2')",
        "invalid device ordinal",
    ),
    "a result read too early": (
        "init()\ntotal = torch.ones(3, device=device())\n"
        "dist.all_reduce(total, async_op=True)\nprint(total + 1)",
        "on which all_reduce still works",
    ),
    "a message read too early": (
        "init()\nbox = torch.ones(3, device=device())\nother = 1 - dist.get_rank()\n"
        "pair = [dist.P2POp(dist.isend, box.clone(), other), dist.P2POp(dist.irecv, box, other)]\n"
        "dist.batch_isend_irecv(pair)\nbox.tolist()",
        "on which irecv still works",
    ),
    "a clock read too early": (
        "init()\nstart = time.perf_counter()\ntorch.ones(3, device=device()) * 2\n"
        "print(time.perf_counter() - start)",
        "reads the clock while the GPU may still work",
    ),
    "a message from anybody": (
        "init()\nbox = torch.ones(3, device=device())\nif dist.get_rank():\n    dist.recv(box)\n"
        "else:\n    dist.send(box, 1)",
        "does not support recvAnysource",
    ),
    "a tensor with gaps in a collective": (
        "init()\ndist.all_reduce(torch.ones(3, 2, device=device())[:, 0])",
        "Tensors must be contiguous",
    ),
    "a reduction by bits": (
        "init()\ndist.all_reduce(torch.ones(3, device=device()).int(), dist.ReduceOp.BOR)",
        "Cannot use this ReduceOp with NCCL",
    ),
    "16-bit integers": (
        "init()\ndist.all_reduce(torch.ones(3, device=device()).short())",
        "data type is not supported for NCCL",
    ),
    "a group made by its members only": (
        "init()\nif dist.get_rank() == 0:\n    dist.new_group([0])",
        "rank 1 has not made the group of ranks [0]",
    ),
    "a tensor of the GPU as an array": (
        "init()\ntorch.ones(3, device=device()).numpy()",
        "can't convert cuda:",
    ),
    "a future that names no device": (
        "init()\ntorch.futures.Future().set_result(torch.ones(3, device=device()))",
        "not among the expected device(s)",
    ),
    "a generator of the CPU": (
        "init()\ntorch.randn(3, device=device(), generator=torch.Generator().manual_seed(0))",
        "Expected a 'cuda' device type for generator",
    ),
}


# A script that gets through on gloo, and what its ranks would wait in on NCCL.
ORDERS = {
    "both send first": (
        "work = dist.isend(mine, other)\ndist.recv(theirs, other)\nwork.wait()",
        "rank 0 in [['send', 1]]; rank 1 in [['send', 0]]",
    ),
    "a reply that queues behind the next message": (
        "if rank == 0:\n    works = [dist.isend(mine, 1), dist.isend(mine, 1)]\n"
        "    dist.recv(theirs, 1)\n    [work.wait() for work in works]\nelse:\n"
        "    dist.recv(theirs, 0)\n    dist.send(mine, 0)\n    dist.recv(theirs, 0)",
        "rank 0 in [['send', 1]]; rank 1 in [['send', 0]]",
    ),
}
MESSAGES = """
init()
rank, other = dist.get_rank(), 1 - dist.get_rank()
mine, theirs = torch.ones(3, device=device()), torch.ones(3, device=device())
"""
MESH = """
mesh = dist.init_device_mesh("cuda", (2,))  # sets the GPU, and chooses the back end
total = torch.ones(3, device="cuda")
dist.all_reduce(total)
report(where=str(total.device), config=dist.get_backend_config(), total=total.tolist())
"""


@pytest.mark.parametrize("orders", ORDERS)
def test_messages_that_only_gloo_tells_apart_fail(worker, orders):
    script, said = ORDERS[orders]
    with pytest.raises(AssertionError) as failed:
        on_gpus(worker("orders.py", HEAD + MESSAGES + script), gpus=2, nproc=2)
    assert said in str(failed.value)


def test_messages_that_begin_together_may_cross(worker):
    script = """
for _ in range(2):
    pair = [dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, theirs, other)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
dist.send(mine, 1) if rank == 0 else dist.recv(theirs, 0)
dist.barrier()
"""
    assert on_gpus(worker("crosses.py", HEAD + MESSAGES + script), gpus=2, nproc=2).ok


def test_a_mesh_starts_nccl_on_the_gpu_of_each_rank(worker):
    run = on_gpus(worker("mesh_on_gpus.py", HEAD + MESH), gpus=2, nproc=2)
    assert run.ok, f"{run.verdict}\n{run.ranks[0].stderr}"
    for rank, got in enumerate(run.reports):
        assert got["where"] == f"cuda:{rank}"
        assert (got["config"], got["total"]) == ("cuda:nccl", [2.0, 2.0, 2.0])


def test_a_right_script_runs_on_nccl_and_computes_what_it_should(worker):
    run = on_gpus(worker("right.py", HEAD + RIGHT), gpus=2, nproc=2)
    assert run.ok, f"{run.verdict}\n{run.ranks[0].stderr}"
    for rank, got in enumerate(run.reports):
        assert got["total"] == 3.0
        assert got["average"] == [0.5, 0.5]
        assert got["everyone"] == [0, 1]
        assert got["at"] == f"cuda:{rank}"


@pytest.mark.parametrize("wrong", WRONG)
def test_each_kind_of_mistake_fails_and_is_named(worker, wrong):
    script, said = WRONG[wrong]
    run = on_gpus(worker("wrong_on_gpus.py", HEAD + script), gpus=2, nproc=2)
    assert not run.ok
    assert said in "".join(rank.stderr for rank in run.ranks)
