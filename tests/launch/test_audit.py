"""The contract of audit.py (notebook 15): what it finds, and what it says about it."""

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
from nbtorchrun.worker import init, report

init()
rank, world = dist.get_rank(), dist.get_world_size()
right = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
parts = torch.randn(world, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
"""
FOUND = """
report(ok=row.ok, ratio=row.ratio, cause=row.cause, worst_rank=row.rank, name=row.name)
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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_refused(dtype):
    with pytest.raises(TypeError, match=f"first is {dtype}: too coarse"):
        tool.audit(gradients(dtype=dtype), gradients(dtype=dtype))


@pytest.mark.parametrize("factor", [1.0, 2.0, 1.1, -1.0])
def test_a_single_value_has_no_direction(factor):
    right = {"loss": torch.tensor(1.5).double(), "weight": torch.ones(2).double()}
    rows = tool.audit({name: factor * value for name, value in right.items()}, right, {"n": 2})
    assert [math.isnan(row.cosine) for row in rows] == [True, False]
    assert "-" in tool.table(rows[:1]).splitlines()[1].split()


@pytest.mark.parametrize(
    ("cosine", "shown"),
    [(1.0, "1.000"), (1 - 1e-12, "1.000"), (0.9995, "1-5e-04"), (0.69, "0.690"), (-1e-9, "0.000")],
)
def test_a_cosine_that_is_nearly_one_is_not_shown_as_one(cosine, shown):
    assert tool.digits(cosine) == shown


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (("cp",), "over cp: sum of 2 ranks"),
        (("dp", "tp"), "over dp x tp: sum of 16 ranks"),
        ((), "another direction"),
    ],
)
def test_a_mesh_names_the_axis_of_a_missing_sum_and_32_ranks_take_no_time(over, said):
    causes, mesh = load_worker("audit_causes.py"), load_worker("mesh.py").Mesh(dp=4, cp=2, tp=4)
    values = torch.randn(32, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    held = []
    for ranks in mesh.groups(*(over or ("dp", "cp", "tp"))):
        right = values[ranks].sum(0) if over else torch.ones_like(values[0])
        held += [(rank, values[rank], right) for rank in ranks]
    row = tool.compare("w", *held[0][1:], 1.0, 0)
    assert said in causes.likely_cause(row, sorted(held, key=lambda each: each[0]), mesh)


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
    assert told(run, "worst_rank") == [1] * 3


def test_each_rank_may_hold_other_parameters(worker, launch):
    script = """
names = {f"layer{k}": parts[k] for k in range(world)}
rows = audit({f"layer{rank}": parts[rank]}, names)
assert [row.name for row in rows] == list(names), rows
row = rows[0]
"""
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=4)
    assert told(run, "ok") == [True] * 4


LOST = """
from mesh import Mesh
mesh = Mesh({sizes})
both = {{"w": right, "b": right}}
found = {{"b": right}} if rank in {ranks} else both
row, other = audit(found, both, mesh)
assert other.ok
"""


@pytest.mark.parametrize(
    ("sizes", "ranks", "cause"),
    [
        ("dp=2, tp=2", (1,), "rank 1 lacks this parameter"),
        ("dp=2, pp=2", (2, 3), "rank 2 lacks this parameter"),  # 2 and 3 are two stages
        ("pp=4", (1,), ""),  # another stage need not have it
    ],
)
def test_a_parameter_that_some_ranks_of_a_stage_lack_is_lost(worker, launch, sizes, ranks, cause):
    script = LOST.format(sizes=sizes, ranks=ranks)
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=4)
    assert told(run, "name") == ["w"] * 4
    assert told(run, "cause") == [cause] * 4
    assert told(run, "ok") == [not cause] * 4


NAMES = ("up", "bias", "down", "scale")


def shaken(values, seed):
    """The values with another rounding error in each."""
    random = torch.Generator().manual_seed(seed)
    return {
        name: value * (1 + 1e-15 * torch.randn(value.shape, generator=random, dtype=value.dtype))
        for name, value in values.items()
    }


@pytest.mark.parametrize("factor", [1.0, 1.25], ids=["right", "all wrong by as much"])
def test_what_rounding_decides_is_ordered_by_name(factor):
    right = {name: torch.arange(1.0, 6.0, dtype=torch.float64) for name in NAMES}
    wrong = {name: factor * value for name, value in right.items()}
    tables = {tool.table(tool.audit(shaken(wrong, seed), right)) for seed in range(20)}
    assert len(tables) == 1
    (table,) = tables
    assert [line.split()[0] for line in table.splitlines()[1:]] == sorted(NAMES)


def test_what_is_wrong_comes_first_the_worst_of_it_at_the_top():
    right = {name: torch.arange(1.0, 6.0, dtype=torch.float64) for name in NAMES}
    wrong = right | {"up": 1.1 * right["up"], "down": math.nan * right["down"]}
    wrong["bias"] = 1.2 * right["bias"]
    lines = tool.table(tool.audit(shaken(wrong, 0), right)).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["down", "bias", "up", "scale"]


def test_a_gradient_that_is_all_rounding_has_no_direction():
    right = {"weight": torch.ones(4).double(), "key_bias": torch.tensor([2e-17, -1e-17]).double()}
    for found in ([2e-17, -1e-17], [-3e-17, 1e-17], [0.0, 0.0]):
        rows = tool.audit(right | {"key_bias": torch.tensor(found).double()}, right)
        assert [(row.ok, row.ratio, row.cosine) for row in rows] == [(True, 1, 1)] * 2
    row = tool.audit(right | {"key_bias": torch.ones(2).double()}, right)[1]
    assert not row.ok
    assert math.isnan(row.ratio)


@pytest.mark.parametrize("noise", [0, 1e-15, -1e-15])
def test_of_ranks_that_are_equally_wrong_the_lowest_is_shown(worker, launch, noise):
    """Two halves of a mean are off by as much to both sides: which is worse is rounding."""
    script = f"""
off = right * (-1) ** rank / 10
(row,) = audit({{'w': (right + off) * (1 + {noise} * rank)}}, {{'w': right}}, {{'dp': 2}})
"""
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=2)
    assert told(run, "worst_rank") == [0, 0]
    assert told(run, "ratio") == pytest.approx([1.1, 1.1])
    assert all("mean of 2 ranks" in cause for cause in told(run, "cause"))


def test_ranks_that_differ_by_rounding_hold_the_same(worker, launch):
    script = "(row,) = audit({'w': right / 2 * (1 + 1e-15 * rank)}, {'w': right}, {'tp': 2})"
    run = launch(worker("case.py", HEAD + script + FOUND), nproc=2)
    assert all(cause.startswith("1/tp") for cause in told(run, "cause"))
