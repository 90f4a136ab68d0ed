"""The contracts of notebook 10's worker files, on 3 and 4 ranks."""

import pytest

from course_utils import launch, paths
from course_utils.files import write_missing

CONTRACT = """
import torch
import torch.distributed as dist
from compression import Half, PowerSGD, Sign, TopK
from local_sgd import DiLoCo, LocalSGD
from nbtorchrun.worker import init, report

init()
rank, world = dist.get_rank(), dist.get_world_size()
MAKERS = {"TopK": lambda: TopK(0.1), "Sign": Sign, "PowerSGD": lambda: PowerSGD(1), "Half": Half}


def same(tensor):
    every = [torch.empty_like(tensor) for _ in range(world)]
    dist.all_gather(every, tensor)
    return all(torch.equal(other.nan_to_num(), tensor.nan_to_num()) for other in every)


def error(call):
    try:
        call()
    except (ValueError, TypeError) as wrong:
        return str(wrong)
    return ""


for name, make in MAKERS.items():
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for shape in ((), (1,), (9,), (3, 5), (5, 3), (2, 3, 4), (0,), (0, 4)):
            compressor = make()
            gradient = torch.randn(shape, generator=torch.Generator().manual_seed(rank)).to(dtype)
            before = gradient.clone()
            for _ in range(2):
                mean = compressor.average(gradient)
                assert (mean.shape, mean.dtype) == (gradient.shape, dtype), (name, shape, dtype)
                assert same(mean), (name, shape, dtype)
            assert torch.equal(gradient, before)
    for shape in ((33, 7), (8, 40), (4, 5, 6)):
        gradient = torch.randn(shape, generator=torch.Generator().manual_seed(rank))
        mean = gradient / world
        dist.all_reduce(mean)
        # Half has little to make up for, and a vector goes whole through PowerSGD.
        if name == "Half" or (name == "PowerSGD" and len(shape) == 1):
            continue
        off = {}
        for feedback in (True, False):
            compressor, total = make(), torch.zeros(shape)
            compressor.feedback = feedback
            for _ in range(25):
                total += compressor.average(gradient)
            off[feedback] = (total - 25 * mean).norm().item()
        assert off[True] < 0.4 * off[False], (name, shape, off)
    broken = torch.full((6, 4), torch.inf if rank else 1.0)
    compressor = make()
    assert not compressor.average(broken).isfinite().all(), name
    assert compressor.average(torch.ones(6, 4)).isfinite().all(), name
    names = make()
    assert "floating-point" in error(lambda: names.average(torch.arange(4)))
    assert "rank 1 brings a gradient of (4,)" in error(lambda: names.average(torch.ones(3 + rank)))

for share in (0, -1, 1.5, float("nan")):
    assert "above 0 and at most 1" in error(lambda: TopK(share))
for columns in (0, -2, 1.5):
    assert "whole number from 1" in error(lambda: PowerSGD(columns))
for every in (0, 2.5):
    assert "whole number of steps from 1" in error(lambda: LocalSGD(torch.nn.Linear(2, 2), every))

groups = [dist.new_group([rank]) for rank in range(world)]  # a group of one averages with itself
alone = torch.arange(6.0).view(2, 3) + rank
assert torch.allclose(PowerSGD(2).average(alone, groups[rank]), alone, atol=1e-5)
assert torch.allclose(TopK(1.0).average(alone, group=groups[rank]), alone, atol=1e-5)
model = torch.nn.Linear(3, 2)
model.weight.requires_grad_(False)
meetings = DiLoCo(model, every=2)
assert same(model.weight) and same(model.bias.detach())
with torch.no_grad():
    model.bias += rank
meetings.step()
assert not same(model.bias.detach())
meetings.step()
assert same(model.bias.detach())
report(done=True)
"""


@pytest.mark.parametrize("ranks", [3, 4])
def test_compressors_and_local_sgd_keep_their_contract(ranks):
    write_missing("compression.py", "local_sgd.py")
    (paths.workers() / "contract.py").write_text(CONTRACT)
    run = launch("contract.py", nproc=ranks, show=False, timeout=240)
    assert run.series("done") == [True]


@pytest.mark.parametrize("servers", [2, 3])
def test_a_group_of_servers_computes_what_one_process_does(servers):
    run = launch(
        "train_parameter_server.py", "--servers", servers, "--steps", 3, nproc=3, show=False
    )
    (found,) = [report for report in run.reports if "claim" in report]
    assert found["worst"] < found["bound"]
    carried = [report["carried"] for report in run.reports if "carried" in report]
    assert max(carried) == pytest.approx(4 * 2 / 3 if servers == 3 else 2, rel=0.01)


def test_servers_that_cannot_be_are_named_in_one_sentence():
    run = launch("train_parameter_server.py", "--servers", 4, nproc=2, show=False, check=False)
    assert "1 to 2 servers among 2 ranks" in "".join(rank.stderr for rank in run.ranks)
