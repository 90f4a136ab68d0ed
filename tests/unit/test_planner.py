"""The planner of notebook 16: what it lists, in which order, and what moves its numbers."""

import math
import random
from dataclasses import replace

import pytest

from course_utils import load_worker

planner = load_worker("planner.py")
Cut, Model = planner.Cut, planner.Model


@pytest.fixture(scope="module")
def plans():
    return planner.plan(70e9, 512, 80, 400)


def test_every_plan_uses_all_gpus_and_fits(plans):
    assert plans
    for each in plans:
        cut = each.cut
        assert cut.dp * cut.pp * cut.cp * cut.tp == 512
        assert each.memory <= 80
        assert 0 <= each.bubble < 1
        assert set(each.bytes) == {"dp", "pp", "cp", "tp"}
        assert all(math.isfinite(size) and size >= 0 for size in each.bytes.values())


def test_the_fastest_comes_first(plans):
    seconds = [float(f"{each.seconds:.9g}") for each in plans]  # the rest is rounding
    assert seconds == sorted(seconds)


def test_the_model_may_be_a_shape_or_a_number(plans):
    shape = Model.of_size(70e9)
    assert abs(shape.parameters / 70.6e9 - 1) < 0.01
    assert planner.plan(shape, 512, 80, 400) == plans


@pytest.mark.parametrize("parameters", [1e6, 1e9, 8e9, 405e9, 1e12])
def test_a_shape_of_any_size_has_about_that_many_parameters(parameters):
    shape = Model.of_size(parameters)
    assert shape.layers >= 1
    assert parameters < 5e9 or abs(shape.parameters / parameters - 1) < 0.05


def test_what_does_not_fit_anywhere_gives_no_plan():
    assert planner.plan(70e9, 8, 80, 400) == []
    assert planner.plan(70e9, 8, 80, 400, every=True)


@pytest.mark.parametrize("wrong", [(0, 80, 400), (512, 0, 400), (512, 80, -1)])
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="above zero"):
        planner.plan(70e9, *wrong)


def test_a_slower_link_is_never_faster():
    best = [planner.plan(70e9, 512, 80, link)[0].seconds for link in (800, 400, 100, 25)]
    best = [float(f"{seconds:.9g}") for seconds in best]
    assert best == sorted(best)


def test_the_state_is_16_bytes_per_parameter_and_zero_3_shares_all_of_it():
    shape = Model(8, 1024, 4096, 1024, vocab=1024, positions=2)  # hardly any activations
    memory = {zero: planner.price(shape, Cut(dp=8, zero=zero), 8).memory for zero in (0, 1)}
    assert memory[0] == pytest.approx(16 * shape.parameters / 1e9, rel=0.01)
    assert memory[1] == pytest.approx((4 + 12 / 8) * shape.parameters / 1e9, rel=0.01)


def test_even_stages_have_the_bubble_of_the_formula_and_uneven_ones_more():
    even, uneven = Model(layers=14, vocab=8), Model(layers=15, vocab=8)
    fast = planner.costs.Machine(link=1e12, inside=1e12)
    cut = Cut(pp=4)
    assert planner.price(uneven, cut, 32, fast).bubble > planner.price(even, cut, 32, fast).bubble
    one = planner.price(even, Cut(pp=2), 32, fast).bubble
    assert one == pytest.approx(1 / 33, abs=1e-4)


def test_chunks_make_the_bubble_smaller_and_cost_memory_and_messages():
    plain, chunked = (planner.price(Model(), Cut(8, 8, 1, 8, chunks=v), 512) for v in (1, 4))
    assert chunked.bubble < 0.65 * plain.bubble
    assert chunked.seconds < plain.seconds
    assert chunked.memory > plain.memory
    assert chunked.bytes["pp"] == 4 * plain.bytes["pp"]
    even = Model(layers=14, vocab=8)
    fast = planner.costs.Machine(link=1e12, inside=1e12)
    one = planner.price(even, Cut(pp=2, chunks=2), 32, fast).bubble
    assert one == pytest.approx(0.5 / 32.5, abs=1e-4)


def test_what_stages_send_each_other_is_shared_over_tp_under_sequence_parallel():
    cut = Cut(8, 8, 1, 8)
    alone = planner.price(Model(), cut._replace(sequence_parallel=False), 512)
    assert alone.bytes["pp"] == 8 * planner.price(Model(), cut, 512).bytes["pp"]


@pytest.mark.parametrize("zero", [1, 3])
def test_data_parallel_messages_hide_behind_computing(zero):
    exposed = replace(planner.costs.H100, overlap=False)
    cut = Cut(dp=64, tp=8, zero=zero)
    least = planner.price(Model(), cut, 512).seconds
    most = planner.price(Model(), cut, 512, exposed).seconds
    slow = replace(planner.costs.H100, link=1.0)
    assert least < most
    data = 8 * planner.price(Model(), cut, 512).bytes["dp"] / 1e9
    assert planner.price(Model(), cut, 512, slow).seconds > 0.9 * data  # too much to hide


def test_a_plan_keeps_the_reserve_free():
    machine = replace(planner.costs.H100, reserve=30)
    found = planner.plan(70e9, 512, 80, 400, machine=machine)
    assert found
    assert max(each.memory for each in found) <= 50


def test_the_bubble_counts_computing_alone():
    slow = replace(planner.costs.H100, link=1.0)
    cut = Cut(8, 8, 1, 8)
    fast, slowed = (planner.price(Model(), cut, 512, m) for m in (planner.costs.H100, slow))
    assert slowed.bubble == fast.bubble
    assert slowed.seconds > fast.seconds


def test_recomputation_trades_memory_for_time(plans):
    for cut in (Cut(dp=64, tp=8), Cut(dp=16, pp=4, tp=8), Cut(dp=32, cp=2, tp=8)):
        keep = planner.price(Model(), cut, 512)
        again = planner.price(Model(), cut._replace(recompute=True), 512)
        assert again.memory < keep.memory
        assert 1.2 < again.seconds / keep.seconds < 1.5


def test_an_axis_of_one_rank_sends_nothing():
    for axis in ("pp", "cp", "tp"):
        sizes = {"dp": 8, "pp": 2, "cp": 2, "tp": 2} | {axis: 1}
        assert planner.price(Model(), Cut(**sizes), 64).bytes[axis] == 0


def test_rounding_does_not_change_the_order_of_plans(monkeypatch):
    """Hundreds of cuts are equally fast, or take the same memory."""
    price, chance = planner.price, random.Random(0)

    def shaken(*arguments):
        found = price(*arguments)
        one, other = (1 + chance.choice((-1, 0, 1)) * 2.0**-52 for _ in range(2))
        return replace(found, seconds=found.seconds * one, memory=found.memory * other)

    before = [each.cut for each in planner.plan(8e9, 64, 80, 400)]
    monkeypatch.setattr(planner, "price", shaken)
    assert [each.cut for each in planner.plan(8e9, 64, 80, 400)] == before


def test_gpus_of_one_machine_share_what_their_ring_sends_outside():
    """A ring leaves a machine once: g cards carry what g GPUs send."""
    machine = replace(planner.costs.H100, inside=1e12)
    sent = {"dp": 100e9}
    alone = planner.message_seconds(sent, Cut(dp=64, tp=8), machine)
    assert alone == pytest.approx(100e9 / 50e9)
    for cut, g in ((Cut(dp=512), 8), (Cut(dp=128, tp=4), 2), (Cut(dp=64, cp=4, tp=2), 4)):
        assert planner.message_seconds(sent, cut, machine) == pytest.approx(alone / g), cut
    spread = Cut(dp=8, pp=8, cp=2, tp=4)  # the next rank of dp is 64 ranks away
    assert planner.message_seconds(sent, spread, machine) == pytest.approx(alone / 2)
    slow = replace(planner.costs.H100, inside=400)  # now the links inside set the pace
    assert planner.message_seconds(sent, Cut(dp=512), slow) == pytest.approx(alone * 7 / 8)
    assert planner.message_seconds(sent, Cut(dp=8), slow) == pytest.approx(alone)


def test_neighbours_send_over_a_card_of_their_own():
    for axis, cut in (("cp", Cut(dp=16, cp=16, tp=2)), ("pp", Cut(dp=16, pp=16, tp=2))):
        seconds = planner.message_seconds({axis: 50e9}, cut, planner.costs.H100)
        assert seconds == pytest.approx(1.0), axis


def test_sequence_parallel_pays_for_its_memory_with_two_gathers_per_layer():
    costs, (stage,) = planner.costs, planner.stages_of(Model(), 1)
    with_it, without = (
        costs.sent_per_microbatch(Model(), Cut(tp=8, sequence_parallel=each), stage)["tp"]
        for each in (True, False)
    )
    gather = 7 / 8 * 2 * 8192 * 8192
    assert with_it - without == pytest.approx(2 * 80 * gather)
    whole, shared = (
        costs.layer_activations(Model(), Cut(tp=8, sequence_parallel=each))
        for each in (False, True)
    )
    assert whole > 2 * shared


@pytest.mark.parametrize("microbatches", [4, 8, 64])
@pytest.mark.parametrize("chunks", [2, 4])
def test_interleaving_holds_as_many_chunks_as_its_schedule(microbatches, chunks):
    """Count forwards less backwards in the lists of notebook 09."""
    shape, pp = Model(layers=32, vocab=8), 4
    interleaved = load_worker("pipeline_schedules.py").interleaved
    plain, cut = Cut(pp=pp), Cut(pp=pp, chunks=chunks)
    layer = 2 * planner.costs.layer_activations(shape, cut)
    for stage in range(pp):
        alive, most = 0, 0
        for action in interleaved(stage, pp, microbatches, chunks):
            alive += 1 if action.kind == "F" else -1
            most = max(most, alive)
        memory = [
            planner.costs.rank_memory(shape, each, stage, microbatches) for each in (plain, cut)
        ]
        layers = planner.stages_of(shape, pp)[stage].layers
        more = (memory[1] - memory[0]) / (layer * layers)
        assert more + min(microbatches, pp - stage) == pytest.approx(most / chunks)


def test_each_half_of_the_data_parallel_messages_hides_behind_its_own_pass():
    visible = planner.visible
    assert visible(2.0, 6.0, Cut(zero=1)) == 0  # 1 behind a forward of 2, 1 behind a backward of 4
    assert visible(6.0, 6.0, Cut(zero=1)) == pytest.approx(1.0)  # the gather is 3, the forward 2
    assert visible(6.0, 6.0, Cut(zero=0)) == pytest.approx(2.0)  # all of it behind backward
    assert visible(6.0, 6.0, Cut(zero=3)) == 0
    assert visible(9.0, 6.0, Cut(zero=3)) == pytest.approx(3.0)
    assert visible(4.0, 8.0, Cut(zero=1, recompute=True)) == 0  # a quarter of 8 is forward


def test_messages_of_neighbours_can_hide_too():
    hidden = replace(planner.costs.H100, neighbours_hide=True)
    cut = Cut(8, 8, 8, 1)
    shown = planner.price(Model(), cut, 512)
    assert planner.price(Model(), cut, 512, hidden).seconds < shown.seconds
    tp_only = Cut(dp=64, tp=8)
    plain, same = (planner.price(Model(), tp_only, 512, m) for m in (planner.costs.H100, hidden))
    assert plain.seconds == same.seconds


def test_a_slower_link_does_not_take_fewer_stages():
    best = [planner.plan(70e9, 512, 80, link)[0].cut.pp for link in (800, 400, 100, 25)]
    assert best == sorted(best)
    assert best[-1] > best[1]
