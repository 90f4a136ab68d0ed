"""The course's own DDP (notebook 03) where training is not polite."""

import pytest

HEAD = """\
import torch, torch.distributed as dist
from torch import nn
from ddp_scratch import DDP
from nbtorchrun.meter import meter
from nbtorchrun.worker import init, report
init()
rank = dist.get_rank()
torch.manual_seed(rank)
SMALL = dict(bucket_cap_mb=0.0001, first_bucket_mb=0.0001)
batch = torch.randn(5, 4)

def differ(module):
    gradients = torch.cat([p.grad.flatten() for p in module.parameters()])
    first = gradients.clone()
    dist.broadcast(first, 0)
    return int((first != gradients).sum())

"""
NORM = """
module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
replica = DDP(module, **SMALL)
"""
CASES = {
    "two forward passes through a batch normalisation, gradients kept": NORM
    + """
for _ in range(2):
    replica.zero_grad(set_to_none=False)
    (replica(batch).sum() + replica(2 * batch).square().sum()).backward()
report(wrong=differ(module))
""",
    "two forward passes, then two backward passes": NORM
    + """
one, other = replica(batch).sum(), replica(-batch).square().sum()
one.backward()
other.backward()
report(wrong=differ(module))
""",
    "no gradient at all on one rank": NORM
    + """
loss = replica(batch).square().sum()
if rank == 0:
    loss.backward()
with meter() as moved:
    replica.finish_gradient_synchronization()
waited = moved.collectives["all_reduce"] == (0 if rank == 0 else len(replica.reducer.buckets))
report(wrong=differ(module) + (not waited))
""",
    "a backward that raises, and the next one": """
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise ValueError("on the way")

module = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
replica = DDP(module, **SMALL)
fault = module[0].register_forward_hook(lambda module, inputs, output: Fails.apply(output))
try:
    replica(batch).sum().backward()
except ValueError:
    fault.remove()
replica.zero_grad()
replica(batch).square().sum().backward()
report(wrong=differ(module))
""",
    "evaluation": NORM
    + """
with torch.no_grad(), meter() as moved:
    replica(batch)
report(wrong=moved.collectives.total())
""",
    "a cap of nothing": """
try:
    DDP(nn.Linear(2, 2), bucket_cap_mb=0)
    report(wrong=1)
except ValueError as error:
    report(wrong=int("choose a cap above 0" not in str(error)))
""",
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.timeout(120)
def test_it_stays_right(worker, launch, case):
    ranks = launch(worker("impolite.py", HEAD + CASES[case]), nproc=2).ranks
    assert [rank.reports for rank in ranks] == [[{"wrong": 0}]] * 2
