"""The contract of context_parallel.py (notebook 11), on 1 to 4 ranks, against one process."""

import pytest

HEAD = """\
import torch
import torch.distributed as dist
from context_parallel import gather_attention, positions, ring_attention
from context_parallel import shard_sequence, ulysses_attention, unshard_sequence
from torch.nn.functional import scaled_dot_product_attention
from nbtorchrun.worker import init, report, worst, worst_of_ranks

init()
rank, world = dist.get_rank(), dist.get_world_size()


def made(seed, *shape, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype)


def refused(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""
"""
EQUAL = """
found = []
for length in (8, 13, 16, 18):
    for heads, kv_heads in ((4, 4), (6, 2), (4, 1), (5, 5)):
        for causal in (True, False):
            whole = [made(i, 2, length, h, 5) for i, h in enumerate((heads, kv_heads, kv_heads))]
            whole = [x.requires_grad_() for x in whole]
            right = scaled_dot_product_attention(
                *(x.transpose(1, 2) for x in whole), is_causal=causal, enable_gqa=True
            ).transpose(1, 2)
            weights = made(9, *right.shape)
            (right * weights).sum().backward()
            for way in ("ring contiguous", "ring zigzag", "gather zigzag", "gather contiguous",
                        "ulysses contiguous"):
                name, layout = way.split()
                attention, extra = {
                    "ring": (ring_attention, {"layout": layout}),
                    "gather": (gather_attention, {"layout": layout}),
                    "ulysses": (ulysses_attention, {}),
                }[name]
                parts = [shard_sequence(x.detach(), layout).requires_grad_() for x in whole]
                out = attention(*(x.transpose(1, 2) for x in parts), causal=causal, **extra)
                joined = unshard_sequence(out.transpose(1, 2), layout)
                (joined * weights).sum().backward()
                pairs = [(joined.detach(), right.detach())]
                pairs += [(p.grad, shard_sequence(x.grad, layout)) for p, x in zip(parts, whole)]
                found += [(ours - theirs).abs().max() for ours, theirs in pairs]
off = worst_of_ranks(found)
assert off < 1e-10, off
report(off=off, many=len(found))
"""


@pytest.mark.parametrize("nproc", [1, 2, 3, 4])
def test_all_ways_equal_one_process_in_float64(worker, launch, nproc):
    run = launch(worker("equal.py", HEAD + EQUAL), nproc=nproc)
    assert run.series("many") == [4 * 4 * 2 * 5 * 4]


BY_HAND = """
import attention_piece
attention_piece.has_kernel = lambda q: False
attention_piece.STRIP = 7  # queries at a time: many pieces need several strips
"""


@pytest.mark.parametrize("nproc", [1, 3])
def test_the_formulas_by_hand_equal_the_kernel(worker, launch, nproc):
    run = launch(worker("by_hand.py", HEAD + BY_HAND + EQUAL), nproc=nproc)
    assert run.series("many") == [4 * 4 * 2 * 5 * 4]


LAYOUT = """
for layout in ("contiguous", "zigzag"):
    for length in range(2 * world, 2 * world + 9):
        x = torch.arange(2 * length).view(2, length)  # token ids
        part = shard_sequence(x, layout)
        assert torch.equal(unshard_sequence(part, layout), x), (layout, length)
        mine = positions(length, layout)
        assert torch.equal(part[0], mine), (layout, length)
        if layout == "contiguous":
            assert torch.equal(mine, torch.arange(length).tensor_split(world)[rank])
        else:
            cut = torch.arange(length).tensor_split(2 * world)
            assert torch.equal(mine, torch.cat([cut[rank], cut[2 * world - 1 - rank]]))
            work = [(positions(length, layout, rank=r) + 1).sum() for r in range(world)]
            assert length % (2 * world) or len({int(each) for each in work}) == 1
    x = made(0, 2, 2 * world + 3, 4).requires_grad_()
    weights = made(1, *x.shape)
    (shard_sequence(x, layout).square() * shard_sequence(weights, layout)).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach() * weights)  # gathered in backward
"""


@pytest.mark.parametrize("nproc", [1, 2, 3, 4])
def test_a_sequence_is_cut_as_torch_cuts_and_comes_back(worker, launch, nproc):
    assert launch(worker("layout.py", HEAD + LAYOUT), nproc=nproc).ok


GROUPS = """
pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
group = pairs[rank % 2]
q, k, v = (made(10 * (rank % 2) + i, 1, 2, 9, 4) for i in range(3))  # each pair has its own
right = scaled_dot_product_attention(q, k, v, is_causal=True)
for layout in ("contiguous", "zigzag"):
    parts = [shard_sequence(x.transpose(1, 2), layout, group).transpose(1, 2) for x in (q, k, v)]
    out = ring_attention(*parts, group=group, layout=layout)
    joined = unshard_sequence(out.transpose(1, 2), layout, group).transpose(1, 2)
    assert torch.allclose(joined, right, rtol=1e-12, atol=1e-12)
parts = [shard_sequence(x.transpose(1, 2), group=group).transpose(1, 2) for x in (q, k, v)]
for attention in (gather_attention, ulysses_attention):
    out = attention(*parts, group=group)
    joined = unshard_sequence(out.transpose(1, 2), group=group).transpose(1, 2)
    assert torch.allclose(joined, right, rtol=1e-12, atol=1e-12)
"""


def test_groups_do_not_disturb_each_other(worker, launch):
    assert launch(worker("groups.py", HEAD + GROUPS), nproc=4).ok


HALF = """
for dtype, loose in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
    whole = [made(i, 1, 14, 4, 8, dtype=dtype).requires_grad_() for i in range(3)]
    exact = [x.detach().double().requires_grad_() for x in whole]
    right = scaled_dot_product_attention(*(x.transpose(1, 2) for x in exact), is_causal=True)
    right.square().sum().backward()
    for layout in ("contiguous", "zigzag"):
        parts = [shard_sequence(x.detach(), layout).requires_grad_() for x in whole]
        out = ring_attention(*(x.transpose(1, 2) for x in parts), layout=layout)
        assert out.dtype == dtype
        out.square().sum().backward()
        for part, x in zip(parts, exact):
            theirs = shard_sequence(x.grad, layout)
            assert (part.grad - theirs).abs().max() < loose * theirs.abs().max() + loose
"""


@pytest.mark.parametrize("how", ["", BY_HAND], ids=["kernel", "by hand"])
def test_it_keeps_the_dtype(worker, launch, how):
    assert launch(worker("half.py", HEAD + how + HALF), nproc=3).ok


HIDDEN = """
import ring_of_keys

waiting, honest, wait_for = {}, ring_of_keys.pass_on, ring_of_keys.wait_for
computed, alone = 0, []


def counts(function):
    def counted(*arguments):
        global computed
        computed += 1
        return function(*arguments)

    return counted


def sends(*arguments):
    coming, works = honest(*arguments)
    waiting[id(works)] = computed
    return coming, works


def waits(works):
    alone.append(works != [] and waiting[id(works)] == computed)
    wait_for(works)


ring_of_keys.attend = counts(ring_of_keys.attend)
ring_of_keys.attend_backward = counts(ring_of_keys.attend_backward)
ring_of_keys.pass_on, ring_of_keys.wait_for = sends, waits
q, k, v = (made(i, 1, 2, 3, 4).requires_grad_() for i in range(3))
ring_attention(q, k, v, causal=False).sum().backward()
report(alone=alone)
"""


@pytest.mark.parametrize("nproc", [2, 4])
def test_only_the_last_hop_of_dk_and_dv_travels_while_nobody_computes(worker, launch, nproc):
    (alone,) = launch(worker("hidden.py", HEAD + HIDDEN), nproc=nproc).series("alone")
    assert alone == [False] * (3 * nproc - 4) + [True]


SUMS = """
import ring_of_keys

sent, honest = [], ring_of_keys.pass_on


def sends(tensor, *more):
    sent.append(str(tensor.dtype))
    return honest(tensor, *more)


ring_of_keys.pass_on = sends
q, k, v = (made(i, 1, 2, 3, 4, dtype=torch.bfloat16).requires_grad_() for i in range(3))
ring_attention(q, k, v, causal=False).sum().backward()
report(sent=sent, kept=[str(x.grad.dtype) for x in (q, k, v)])
"""


def test_sums_of_16_bit_gradients_travel_in_32_bits(worker, launch):
    run = launch(worker("sums.py", HEAD + SUMS), nproc=3)
    (sent,), (kept,) = run.series("sent"), run.series("kept")
    assert sorted(sent) == ["torch.bfloat16"] * 4 + ["torch.float32"] * 2
    assert kept == ["torch.bfloat16"] * 3


REFUSED = """
def zeros(heads, length, width=4, dtype=None):
    return torch.zeros(1, heads, length, width, dtype=dtype)


def ring(q, k=None, v=None, **more):
    k = q if k is None else k
    return lambda: ring_attention(q, k, k if v is None else v, **more)


last = rank == world - 1
report(**{
    "short": refused(lambda: shard_sequence(torch.zeros(1, world - 1, 2))),
    "short zigzag": refused(lambda: shard_sequence(torch.zeros(1, 2 * world - 1), "zigzag")),
    "layout": refused(lambda: shard_sequence(torch.zeros(1, 20), "zig")),
    "kv": refused(ring(zeros(4, 2), zeros(3, 2))),
    "no kv": refused(ring(zeros(4, 2), zeros(0, 2))),
    "few": refused(lambda: ulysses_attention(*[zeros(world - 1, 2)] * 3)),
    "batch": refused(ring(torch.zeros(2 if last else 1, 2, 2, 4))),
    "heads": refused(ring(zeros(4 if last else 2, 2), zeros(2, 2))),
    "lengths": refused(ring(zeros(2, 3 if last else 2))),
    "one rank": refused(ring(zeros(4, 2), zeros(3 if last else 4, 2))),
    "dtype": refused(ring(zeros(2, 2, dtype=torch.float64 if last else torch.float32))),
    "causal": refused(ring(zeros(2, 2), causal=last)),
    "dimensions": refused(ring(torch.zeros(2, 2, 4))),
    "layouts": refused(ring(zeros(2, 4), layout="zigzag" if last else "contiguous")),
})
"""


@pytest.mark.parametrize("nproc", [2, 3])
def test_what_does_not_fit_is_refused_on_every_rank_in_one_sentence(worker, launch, nproc):
    run = launch(worker("refused.py", HEAD + REFUSED), nproc=nproc)
    for rank in range(nproc):
        (said,) = (r for r in run.reports if r["rank"] == rank)
        assert "too few for" in said["short"]
        assert f"at least {2 * nproc} positions" in said["short zigzag"]
        assert "choose 'contiguous' or 'zigzag'" in said["layout"]
        assert "4 query heads cannot share 3 KV heads" in said["kv"]
        assert "cannot share 0 KV heads" in said["no kv"]
        assert "take fewer ranks or ring_attention" in said["few"]
        assert "disagree about their shapes" in said["batch"]
        assert "disagree about the number of query heads" in said["heads"]
        assert "cut with shard_sequence" in said["lengths"]
        assert "do not fit" in said["one rank"] or "cannot share" in said["one rank"]
        assert "disagree about the dtype" in said["dtype"]
        assert "disagree about causal" in said["causal"]
        assert "expected q (B, H, T/N, d)" in said["dimensions"]
        assert "disagree about the layout" in said["layouts"]


NO_OP = """
from sequence_layout import assert_cut
x = torch.zeros(2, 12, 3)
report(cut=refused(lambda: assert_cut(shard_sequence(x), 1, 12, "contiguous")),
       whole=refused(lambda: assert_cut(x, 1, 12, "contiguous")))
"""


def test_a_size_that_cuts_nothing_is_refused(worker, launch):
    run = launch(worker("no_op.py", HEAD + NO_OP), nproc=2)
    assert run.series("cut") == [""]
    assert "holds 12 of 12 positions" in run.series("whole")[0]


BROKEN = """
import sys
import ring_of_keys
from context_harness import beside_one_process

honest, first = ring_of_keys.attend_backward, {}


def reads_saved(gradient, q, out, lse, k, v, causal):
    return honest(gradient, q, out, lse, *first.setdefault("kv", (k, v)), causal)


def twice(gradient, q, out, lse, k, v, causal):
    dq, dk, dv = honest(gradient, q, out, lse, k, v, causal)
    return dq, 1.01 * dk, dv


def stays_home(tensor, shape, group):
    return tensor.new_zeros(shape), []


def wrong():
    rows = beside_one_process("ring", length=12, heads=2, kv_heads=2, causal=False)
    return sorted(row.name for row in rows if not row.ok)


found = {"honest": wrong()}
ring_of_keys.attend_backward = reads_saved
found["first K and V again"] = wrong()
ring_of_keys.attend_backward = twice
found["dk 1 % too large"] = wrong()
ring_of_keys.attend_backward, ring_of_keys.pass_on = honest, stays_home
found["no messages"] = wrong()
ring_of_keys.attend_backward = lambda *a: [x * torch.nan for x in honest(*a)]
found["not-a-number"] = wrong()
report(**found)
"""


def test_the_harness_finds_what_is_broken(worker, launch):
    found = launch(worker("broken.py", HEAD + BROKEN), nproc=3).reports[0]
    assert found["honest"] == []
    assert found["first K and V again"] == ["dk", "dq", "dv"]
    assert found["dk 1 % too large"] == ["dk"]
    assert found["no messages"] == ["dk", "dq", "dv", "out"]
    assert found["not-a-number"] == ["dk", "dq", "dv", "out"]
