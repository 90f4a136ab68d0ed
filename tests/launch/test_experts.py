"""The contract of experts.py (notebook 12), on 1 to 4 ranks, against one process."""

import pytest

HEAD = """\
import torch
import torch.distributed as dist
from experts import MoE, count_choices, rebalance
from nbtorchrun.worker import init, report, worst, worst_of_ranks

init()
rank, world = dist.get_rank(), dist.get_world_size()
solo = [dist.new_group([each]) for each in range(world)][rank]


def made(seed, *shape):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def refused(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def both(*layer, seed=3):
    torch.manual_seed(seed + rank)  # the ranks' own seeds differ: rank 0's counts
    moe = MoE(8, 12, *layer).double()
    torch.manual_seed(seed)
    return moe, MoE(8, 12, *layer, group=solo).double()
"""
EQUAL = """
found = []
for layer in ((4, 1), (5, 2), (3, 3), (7, 2, 1.0), (4, 2, 0.5), (4, 1, 0.01)):
    for sizes in ((3, 7, 0, 5), (0, 9, 1, 4), (0, 0, 0, 3), (6, 6, 6, 6)):
        sizes = sizes[:world]
        moe, one = both(*layer)
        assert torch.equal(moe.router, one.router)
        for name in ("w1", "w2"):
            mine, whole = (getattr(each.local_experts, name) for each in (moe, one))
            assert torch.equal(mine, whole[moe.local_experts.mine])
        own = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
        x, weights = made(5, sum(sizes), 8).requires_grad_(), made(6, sum(sizes), 8)
        mine = x.detach()[own].requires_grad_(rank != 1)  # rank 1 does not ask for gradients
        right, ours = one(x), moe(mine)
        assert ours.shape == mine.shape
        ((right * weights).sum() + one.balance_loss).backward()
        ((ours * weights[own]).sum() + moe.balance_loss).backward()
        pairs = [(ours, right[own]), (moe.router.grad, one.router.grad)]
        for name in ("w1", "w2"):
            ours, right = (getattr(each.local_experts, name).grad for each in (moe, one))
            assert moe.local_experts.mine == [] or ours is not None  # chosen or not
            pairs += [(ours, right[moe.local_experts.mine])] if moe.local_experts.mine else []
        pairs += [(mine.grad, x.grad[own])] if rank != 1 else []
        found += [(a - b).abs().max() for a, b in pairs if a.numel()]
        assert torch.equal(count_choices(moe), count_choices(one))
assert worst_of_ranks(found) < 1e-10, worst_of_ranks(found)
report(many=len(found))
"""


@pytest.mark.parametrize("nproc", [1, 2, 3, 4])
def test_it_equals_one_process_in_float64(worker, launch, nproc):
    run = launch(worker("equal_experts.py", HEAD + EQUAL), nproc=nproc)
    assert all(run.series("many", rank=rank)[0] > 20 for rank in range(nproc))


def test_it_works_without_a_process_group(worker, launch):
    text = (
        "import torch\nfrom experts import MoE\nfrom nbtorchrun.worker import report\n"
        "y = MoE(4, 8, 3, 2)(torch.randn(5, 4))\nreport(shape=list(y.shape))\n"
    )
    assert launch(worker("alone_experts.py", text), nproc=1).series("shape") == [[5, 4]]


TRAINED = """
moe, one = both(5, 2)
ours, theirs = (torch.optim.SGD(each.parameters(), lr=0.5) for each in (moe, one))
for step in range(5):
    x, goal = made(step, 6 * world, 8), made(50 + step, 6 * world, 8)
    own = slice(6 * rank, 6 * rank + 6)
    for module, optimizer, rows in ((moe, ours, own), (one, theirs, slice(None))):
        optimizer.zero_grad()
        ((module(x[rows]) - goal[rows]).square().sum() / x.numel()).backward()
        optimizer.step()
        rebalance(module, 0.1)
off = [(moe.router - one.router).abs().max(), (moe.bias - one.bias).abs().max()]
off += [(moe.local_experts.w1 - one.local_experts.w1[moe.local_experts.mine]).abs().max()]
report(off=worst_of_ranks(off), bias=one.bias.abs().max().item())
"""


def test_five_steps_of_training_stay_equal(worker, launch):
    run = launch(worker("trained_experts.py", HEAD + TRAINED), nproc=3)
    assert run.series("off")[0] < 1e-10
    assert run.series("bias")[0] > 0


BIASED = """
from torch.nn.functional import gelu

moe, one = both(6, 2)
for each in (moe, one):
    each.bias += torch.tensor([0.5, -0.3, 0.2, 0.0, -0.5, 0.4])
x, weights = made(5, 7 * world, 8), made(6, 7 * world, 8)
own = slice(7 * rank, 7 * rank + 7)
(moe(x[own]) * weights[own]).sum().backward()
scores, held = (x @ one.router.T).softmax(-1), one.local_experts  # by hand, and in one place
chosen = (scores + one.bias).topk(2).indices  # the bias chooses ...
assert not torch.equal(chosen, scores.topk(2).indices)
of_each = torch.stack([gelu(x @ held.w1[e]) @ held.w2[e] for e in range(6)], 1)
gates = scores.gather(1, chosen).unsqueeze(2)  # ... and the gates know nothing of it
y = (of_each.gather(1, chosen.unsqueeze(2).expand(-1, -1, 8)) * gates).sum(1)
(y * weights).sum().backward()
off = [(moe.router.grad - one.router.grad).abs().max()]
off += [(moe.local_experts.w1.grad - held.w1.grad[moe.local_experts.mine]).abs().max()]
report(off=worst_of_ranks(off))
"""


@pytest.mark.parametrize("nproc", [1, 3])
def test_the_bias_chooses_and_is_in_no_gate(worker, launch, nproc):
    run = launch(worker("biased_experts.py", HEAD + BIASED), nproc=nproc)
    assert run.series("off")[0] < 1e-12


HOME = """
from moe_layer import MoELayer
from torch.distributed.device_mesh import init_device_mesh

torch.manual_seed(0)
ours = MoE(16, 32, 8, 2)
layer = MoELayer(8, 2, 16, 32, init_device_mesh("cpu", (world,)))
held = ours.local_experts
pairs = [(layer.router, "weight", ours.router)]
pairs += [(layer.experts, name, getattr(held, name)) for name in ("w1", "w2")]
for module, name, same in pairs:
    setattr(module, name, torch.nn.Parameter(same.detach().clone()))
mine, theirs = (made(rank, 50, 16).float().requires_grad_() for _ in range(2))
for module, x in ((ours, mine), (layer, theirs)):
    module(x).square().sum().backward()
dist.all_reduce(layer.router.weight.grad)  # the router to take home has no f
found = [(theirs.grad, mine.grad)]
found += [(getattr(module, name).grad, same.grad) for module, name, same in pairs]
assert all(right.abs().max() > 0 for _, right in found)
report(off=worst_of_ranks([(a - b).abs().max() / b.abs().max() for a, b in found]))
"""


def test_the_layer_to_take_home_has_the_same_gradients(worker, launch):
    run = launch(worker("home_experts.py", HEAD + HOME), nproc=2)
    assert run.series("off")[0] < 1e-5


REFUSED = """
last = rank == world - 1
moe = MoE(8, 4, 4, 2)
report(**{
    "top_k": refused(lambda: MoE(8, 4, 4, 5)),
    "no top_k": refused(lambda: MoE(8, 4, 4, 0)),
    "capacity": refused(lambda: MoE(8, 4, 4, 2, capacity_factor=0.0)),
    "nan": refused(lambda: MoE(8, 4, 4, 2, capacity_factor=float("nan"))),
    "none": refused(lambda: MoE(8, 4, 0, 1)),
    "width": refused(lambda: moe(torch.zeros(3, 7 if last else 8))),
    "three": refused(lambda: moe(torch.zeros(2, 3, 8))),
    "dtype": refused(lambda: moe(torch.zeros(3, 8, dtype=torch.float64))),
})
"""


def test_what_does_not_fit_is_refused_on_every_rank_in_one_sentence(worker, launch):
    run = launch(worker("refused_experts.py", HEAD + REFUSED), nproc=3)
    for rank in range(3):
        (said,) = (r for r in run.reports if r["rank"] == rank)
        assert said["top_k"] == "top_k = 5, but there are 4 experts: a token can go to 1 to 4"
        assert "top_k = 0" in said["no top_k"]
        assert "take a number above 0, or None" in said["capacity"]
        assert "capacity_factor = nan" in said["nan"]
        assert "experts 0" in said["none"]
        assert ("rank 2 was given no (tokens, 8)" if rank != 2 else "(3, 7)") in said["width"]
        assert "expected (tokens, 8)" in said["three"]
        assert "torch.float64: expected (tokens, 8)" in said["dtype"]


CAPACITY = """
moe, one = both(4, 1, 0.5)
moe.router.data.zero_()
moe.router.data[2, 0] = 50.0  # every token wants expert 2
x = torch.ones(6, 8, dtype=torch.float64)
y = moe(x)
kept = torch.tensor([int(each.abs().sum() > 0) for each in y])
every = [torch.empty_like(kept) for _ in range(world)]
dist.all_gather(every, kept)
report(kept=torch.cat(every).tolist())
"""


def test_a_full_expert_keeps_the_first_tokens_of_all_ranks(worker, launch):
    run = launch(worker("capacity.py", HEAD + CAPACITY), nproc=3)
    assert run.series("kept") == [[1] * 3 + [0] * 15]  # ceil(0.5 * 18 / 4) = 3


BROKEN = """
import experts
from experts_harness import alone, beside_one_process

solo = alone()


def wrong():
    rows = beside_one_process(solo, sizes=(8, 4, 6), layer=(5, 2))
    return sorted(row.name for row in rows if not row.ok)


found, honest = {"honest": wrong()}, experts.SameOnAllRanks.backward
experts.SameOnAllRanks.backward = staticmethod(lambda ctx, gradient: (gradient, None))
found["router not reduced"] = wrong()
twice = lambda ctx, g: (honest(ctx, g)[0] * (2 if ctx.group is None else 1), None)
experts.SameOnAllRanks.backward = staticmethod(twice)
found["router twice"] = wrong()
experts.SameOnAllRanks.backward, back = staticmethod(honest), experts.combine
experts.combine = lambda results, plan: back(results, plan).flip(0 if plan.group is None else ())
found["wrong order"] = wrong()
experts.combine = lambda results, plan: back(results, plan) * (1 if plan.group else torch.nan)
found["not-a-number"] = wrong()
report(**found)
"""


def test_the_harness_finds_what_is_broken(worker, launch):
    found = launch(worker("broken_experts.py", HEAD + BROKEN), nproc=3).reports[0]
    assert found["honest"] == []
    assert found["router not reduced"] == ["router"]
    assert found["router twice"] == ["router"]
    assert {"out", "w1", "w2"} <= set(found["wrong order"])
    assert "out" in found["not-a-number"]
