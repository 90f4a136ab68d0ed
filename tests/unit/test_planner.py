"""The planner of notebook 14: what it lists, in which order, and what moves its numbers."""

import math

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
    seconds = [each.seconds for each in plans]
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
