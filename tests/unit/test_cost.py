"""The cost formulas: known values, their relations, and constants found again from times."""

import pytest

from course_utils import cost
from course_utils.cost import Costs

MACHINE = Costs(alpha=1e-4, beta=1e-9, gamma=1e-10)


def test_the_example_of_the_course():
    network = Costs(alpha=0, beta=1e-9)
    assert cost.predict("naive", 2, 1.2e9, network) == pytest.approx(2 * 1.2)
    assert cost.predict("naive", 10, 1.2e9, network) == pytest.approx(2 * 10.8)
    assert cost.predict("ring", 10, 1.2e9, network) == pytest.approx(2 * 1.2 * 0.9)


@pytest.mark.parametrize("algorithm", ["naive", "tree", "ring", "halving_doubling"])
def test_one_rank_pays_nothing(algorithm):
    assert cost.predict(algorithm, 1, 1e6, MACHINE) == 0


@pytest.mark.parametrize("ranks", [2, 4, 8, 1024])
def test_halving_doubling_has_the_messages_of_the_tree_and_the_bytes_of_the_ring(ranks):
    halving = cost.terms("halving_doubling", ranks)
    assert halving.messages == cost.terms("tree", ranks).messages
    assert halving[1:] == cost.terms("ring", ranks)[1:]


def test_recursive_doubling_sends_the_whole_in_half_of_the_tree_s_messages():
    assert cost.terms("recursive_doubling", 8) == (3, 3, 3)
    assert cost.terms("recursive_doubling", 6) == (2 + 2, 2 + 2, 2 + 1)  # two ranks are beyond 4


def test_halving_doubling_folds_where_ranks_are_no_power_of_two():
    assert cost.terms("halving_doubling", 6) == (2 * 2 + 2, 2 * 3 / 4 + 2, 3 / 4 + 1)


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_a_reduce_scatter_and_an_all_gather_are_a_ring(ranks):
    halves = [cost.predict(name, ranks, 1e6, MACHINE) for name in ("reduce_scatter", "all_gather")]
    assert sum(halves) == pytest.approx(cost.predict("ring", ranks, 1e6, MACHINE))


def test_constants_are_found_again():
    points = [
        (paid, size, cost.seconds(paid, size, MACHINE))
        for paid in (cost.EXCHANGE, cost.ADDITION, cost.terms("ring", 4))
        for size in (1e3, 1e5, 1e7)
    ]
    found = cost.fit(points)
    assert (found.alpha, found.beta, found.gamma) == pytest.approx((1e-4, 1e-9, 1e-10))


def test_busbw_is_the_bandwidth_of_a_link():
    took = cost.predict("ring", 4, 1e9, Costs(alpha=0, beta=1e-9))
    assert cost.busbw("all_reduce", 4, 1e9, took) == pytest.approx(1e9)
    assert cost.busbw("broadcast", 4, 1e9, 1.0) == pytest.approx(1e9)


def test_a_name_without_a_formula():
    with pytest.raises(ValueError, match="no formula for 'rign': choose one of naive, tree, ring"):
        cost.predict("rign", 4, 1e6, MACHINE)
    with pytest.raises(ValueError, match="ranks must be 1 or more, not 0"):
        cost.predict("ring", 0, 1e6, MACHINE)
