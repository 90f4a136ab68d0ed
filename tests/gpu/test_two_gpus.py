"""What takes two GPUs: NCCL between ranks, `nn.DataParallel`, and copies from GPU to GPU."""

import pytest

from tests.gpu.test_one_gpu import GPUS, HEAD

pytestmark = pytest.mark.skipif(GPUS < 2, reason=f"this takes two GPUs; torch can use {GPUS}")


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_nccl_gives_every_rank_what_each_collective_promises(worker, launch, warm):
    body = """
init()
rank, place = dist.get_rank(), device()
mine = torch.tensor([1.0, 2.0], device=place) + 10 * rank  # [1, 2] and [11, 12]

def result(call, size=2):
    out = mine.new_zeros(size)
    call(out)
    return out

def exchange(out):
    pair = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, out, 1 - rank)]
    [work.wait() for work in dist.batch_isend_irecv(pair)]

report(
    ran_on=[dist.get_backend(), str(place)],
    all_reduce=result(lambda out: dist.all_reduce(out.copy_(mine))),
    broadcast=result(lambda out: dist.broadcast(out.copy_(mine), 1)),
    all_gather=result(lambda out: dist.all_gather_into_tensor(out, mine), size=4),
    reduce_scatter=result(lambda out: dist.reduce_scatter_tensor(out, mine), size=1),
    all_to_all=result(lambda out: dist.all_to_all_single(out, mine)),
    exchange=result(exchange),
)
"""
    run = launch(worker("both.py", HEAD + body), nproc=2, warm=warm)
    for rank, got in enumerate(run.reports):
        assert got["ran_on"] == ["nccl", f"cuda:{rank}"]
        assert got["all_reduce"] == [12.0, 14.0]
        assert got["broadcast"] == [11.0, 12.0]
        assert got["all_gather"] == [1.0, 2.0, 11.0, 12.0]
        assert got["reduce_scatter"] == [[12.0], [14.0]][rank]
        assert got["all_to_all"] == [[1.0, 11.0], [2.0, 12.0]][rank]
        assert got["exchange"] == [[11.0, 12.0], [1.0, 2.0]][rank]


def test_a_rank_that_stays_away_from_an_nccl_collective_is_noticed(worker, launch):
    body = """
init()
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(4, device=device()))
    torch.cuda.synchronize()
time.sleep(600)
"""
    run = launch(worker("away.py", HEAD + body), nproc=2, stall=10, timeout=60, check=False)
    assert run.verdict.kind == "hung"


def test_data_parallel_gives_the_gradient_of_one_gpu(worker, launch):
    body = """
torch.manual_seed(0)
alone, places = nn.Linear(6, 3, device="cuda:0", dtype=torch.float64), []
inputs = torch.randn(10, 6, device="cuda:0", dtype=torch.float64)
replicated = nn.DataParallel(alone, device_ids=[0, 1])
alone.register_forward_hook(lambda module, _, output: places.append(str(output.device)))

def gradient(model):
    alone.zero_grad()
    model(inputs).square().sum().backward()
    return alone.weight.grad.clone()

report(off=(gradient(replicated) - gradient(alone)).abs().max(), places=sorted(set(places)))
"""
    (got,) = launch(worker("replicated.py", HEAD + body), nproc=1).reports
    assert got["places"] == ["cuda:0", "cuda:1"]
    assert got["off"] < 1e-10


def test_a_copy_from_gpu_to_gpu_arrives_whole(worker, launch):
    body = """
numbers = torch.arange(10_000_000, device="cuda:0")
peers = torch.cuda.can_device_access_peer(0, 1)
report(peers=peers, same=torch.equal(numbers, numbers.to("cuda:1").to("cuda:0")))
"""
    (got,) = launch(worker("peers.py", HEAD + body), nproc=1).reports
    assert got["same"]
    if not got["peers"]:
        pytest.skip("these GPUs do not reach each other's memory: it went through the host")
