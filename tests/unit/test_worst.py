"""What a claim has found, folded: not-a-number and infinity are infinite."""

import math

import pytest
import torch

from nbtorchrun.worker import worst

NOT_FINITE = [math.nan, math.inf, -math.inf]


def test_the_largest_of_numbers_tensors_and_lists():
    assert worst(1e-3, torch.tensor([[0.5, 2.0]]), [0.1, (0.2, [3])]) == 3


def test_small_ones_give_the_floor():
    assert worst(3e-17, 0, floor=1e-12) == 1e-12


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_what_is_not_finite_is_infinite_wherever_it_stands(bad):
    for found in ([bad, 1.0], [1.0, bad], [torch.tensor([1.0, bad])], [[[bad]], 0]):
        assert worst(*found, floor=1e-12) == math.inf


@pytest.mark.parametrize("nothing", [(), ([],), (torch.zeros(0),)])
def test_nothing_found_is_no_claim(nothing):
    with pytest.raises(ValueError, match="nothing was found"):
        worst(*nothing)


def test_every_rank_hears_of_one_rank_s_not_a_number(worker, launch):
    source = """
from nbtorchrun.worker import init, report, worst_of_ranks
import torch.distributed as dist
init()
for bad in range(3):
    report(found=worst_of_ranks(float("nan") if dist.get_rank() == bad else 1.0))
"""
    run = launch(worker("nan_on_one.py", source), nproc=3)
    assert [run.series("found", rank=rank) for rank in range(3)] == [[math.inf] * 3] * 3
