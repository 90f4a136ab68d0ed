"""The contract of audit.py (notebook 14): what it finds, and what it says about it."""

import math

import pytest
import torch
from torch import nn

from course_utils import load_worker

tool = load_worker("audit.py")
HEAD = """
import torch
import torch.distributed as dist
from audit import audit
from course_utils.worker import init, report

init()
rank, world = dist.get_rank(), dist.get_world_size()
right = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
parts = torch.randn(world, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
"""
FOUND = """
report(ok=row.ok, ratio=row.ratio, cause=row.cause, rank=row.rank, name=row.name)
"""


def told(run, name):
    return [each[name] for each in run.reports]


def gradients(seed=0, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    shapes = {"first": (4, 3), "second": (7,), "third": ()}
    return {n: torch.randn(s, generator=random, dtype=dtype) for n, s in shapes.items()}


def by_name(model, layout=None):
    return {row.name: row for row in tool.audit(model, gradients(), layout)}


def test_what_is_equal_is_ok_and_rounding_too():
    noisy = {name: value * (1 + 1e-14) for name, value in gradients().items()}
    for rows in (by_name(gradients()), by_name(noisy)):
        assert all(row.ok for row in rows.values())
        assert all(row.cause == "" for row in rows.values())
        assert all(abs(row.ratio - 1) < 1e-9 for row in rows.values())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_per_cent_in_one_value_is_found(dtype):
    right = gradients(dtype=dtype)
    wrong = {name: value.clone() for name, value in right.items()}
    wrong["first"][2, 1] *= 1.01
    rows = {row.name: row for row in tool.audit(wrong, right)}
    assert [name for name, row in rows.items() if not row.ok] == ["first"]


@pytest.mark.parametrize(
    ("factor", "said"), [(4.0, "m times"), (0.5, "1/tp"), (8.0, "tp x m times"), (3.7, "no size")]
)
def test_a_factor_is_named(factor, said):
    wrong = {name: factor * value for name, value in gradients().items()}
    row = by_name(wrong, {"tp": 2, "m": 4})["first"]
    assert not row.ok
    assert row.ratio == pytest.approx(factor)
    assert row.cosine == pytest.approx(1)
    assert said in row.cause


def test_a_loss_that_is_off_by_a_logarithm_is_named():
    row = tool.audit({"loss": torch.tensor(2.0 + math.log(4)).double()},
                     {"loss": torch.tensor(2.0).double()}, {"tp": 4})[0]  # fmt: skip
    assert "log(tp)" in row.cause


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_a_number_is_never_ok(value):
    wrong = gradients()
    wrong["second"][3] = value
    row = by_name(wrong)["second"]
    assert not row.ok
    assert "not a number" in row.cause


def test_zeros_and_another_order_are_named():
    wrong = gradients()
    wrong["first"] = torch.zeros_like(wrong["first"])
    wrong["second"] = wrong["second"].flip(0)
    rows = by_name(wrong)
    assert "never got a gradient" in rows["first"].cause
    assert "another order" in rows["second"].cause


def test_a_missing_parameter_is_a_row_and_another_shape_an_error():
    some = gradients()
    del some["second"]
    row = by_name(some)["second"]
    assert not row.ok
    assert "no rank has" in row.cause
    with pytest.raises(ValueError, match="cannot be compared"):
        by_name(gradients() | {"first": torch.zeros(3, 4).double()})


def test_modules_are_compared_by_their_gradients():
    torch.manual_seed(0)
    models = [nn.Linear(3, 2).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        model(torch.ones(4, 3).double()).square().mean().backward()
    assert all(row.ok for row in tool.audit(*models))
    models[0].bias.grad = None
    rows = {row.name: row for row in tool.audit(*models)}
    assert rows["weight"].ok
    assert not rows["bias"].ok


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("parts[rank]", "sum of 3 ranks is right"),
        ("world * parts[rank]", "mean of 3 ranks is right"),
        ("parts.sum(0) * world", "n times"),
    ],
)
def test_ranks_that_hold_parts_miss_an_all_reduce(worker, launch, found, said):
    script = f"(row,) = audit({{'w': {found}}}, {{'w': parts.sum(0)}}, {{'n': world}})"
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=3)
    assert told(run, "ok") == [False] * 3  # every rank learns it
    assert all(said in cause for cause in told(run, "cause"))


def test_the_worst_rank_is_shown(worker, launch):
    script = "(row,) = audit({'w': right * (1 + 0.01 * (rank == 1))}, {'w': right})"
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=3)
    assert told(run, "ok") == [False] * 3
    assert told(run, "rank") == [1] * 3


def test_each_rank_may_hold_other_parameters(worker, launch):
    script = """
names = {f"layer{k}": parts[k] for k in range(world)}
rows = audit({f"layer{rank}": parts[rank]}, names)
assert [row.name for row in rows] == list(names), rows
row = rows[0]
"""
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=4)
    assert told(run, "ok") == [True] * 4
