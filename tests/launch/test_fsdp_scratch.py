"""The course's own FSDP (notebook 05) where a unit is used more than once."""

import pytest

SCRIPT = """\
import copy
import torch, torch.distributed as dist
from torch import nn
from fsdp_scratch import FSDP
from nbtorchrun.worker import init, report
init()
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
layer = nn.Linear(4, 4).double()
alone = nn.Sequential(layer, nn.Tanh(), layer)
unit = FSDP(copy.deepcopy(layer))
model = FSDP(nn.Sequential(unit, nn.Tanh(), unit))
trained = [(alone, slice(None)), (model, slice(rank, None, world))]
for step in range(3):
    batch = torch.randn(4 * world, 4).double()
    for module, share in trained:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        optimizer.zero_grad()
        module(batch[share]).square().mean().backward()
        optimizer.step()
state, expected = model.full_state_dict(), alone.state_dict()
assert state.keys() == expected.keys(), state.keys()
report(off=max((state[name] - expected[name]).abs().max().item() for name in expected))
"""


@pytest.mark.parametrize("nproc", [1, 2, 3])
def test_a_unit_used_twice_equals_one_process(worker, launch, nproc):
    run = launch(worker("reused.py", SCRIPT), nproc=nproc)
    assert max(run.series("off")) < 1e-12
