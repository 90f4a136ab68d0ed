"""The schedules of notebook 09 as data: their order, their memory, and the deadlocks in them."""

from itertools import product

import pytest

from course_utils import load_worker

SIZES = list(product((1, 2, 3, 4, 6), (1, 2, 3, 5, 8, 13)))  # ranks, micro-batches


@pytest.fixture(scope="module")
def actions():
    return load_worker("pipeline_actions.py")


@pytest.fixture(scope="module")
def schedules(actions):
    return load_worker("pipeline_schedules.py")


def played(schedules, name, p, m, *chunks):
    actions = load_worker("pipeline_actions.py")
    return actions.play([schedules.SCHEDULES[name](rank, p, m, *chunks) for rank in range(p)])


def texts(order):
    return " ".join(map(str, order))


def test_an_action_says_what_it_is(schedules):
    assert texts(schedules.gpipe(0, 2, 3)) == "F0 F1 F2 B0 B1 B2"
    assert texts(schedules.one_f_one_b(0, 3, 4)) == "F0 F1 F2 B0 F3 B1 B2 B3"
    assert texts(schedules.zero_bubble(1, 2, 2)) == "F0 B0 F1 B1 W0 W1"
    first = schedules.interleaved(0, 2, 2, 2)[1]
    assert (first.kind, first.microbatch, first.chunk) == ("F", 1, 0)


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_idle_memory_and_messages_are_those_of_the_formulas(schedules, p, m):
    gpipe, one = (played(schedules, name, p, m) for name in ("gpipe", "1f1b"))
    idle = (p - 1) / (m + p - 1)
    assert gpipe.idle == pytest.approx(idle)
    assert one.idle == pytest.approx(idle)
    assert gpipe.alive == [m] * p
    assert one.alive == [min(m, p - rank) for rank in range(p)]
    assert gpipe.messages == one.messages == 2 * m * (p - 1)


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_zero_bubble_fills_two_thirds_of_it_and_holds_no_more(schedules, p, m):
    zero, one = (played(schedules, name, p, m) for name in ("zero_bubble", "1f1b"))
    assert max(zero.alive) <= max(one.alive)
    assert zero.idle <= one.idle + 1e-9
    if m >= p:
        assert zero.idle == pytest.approx((p - 1) / (3 * m + p - 1))


@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_interleaved_never_deadlocks_and_keeps_its_formula(schedules, p, m, v):
    found = played(schedules, "interleaved", p, m, v)
    assert found.messages == 2 * m * (v * p - 1)
    if m % p == 0 and v > 1:
        assert found.idle == pytest.approx((p - 1) / (v * m + p - 1))


def test_a_deadlock_says_who_waits_for_what(actions):
    F, B = (lambda i, kind=kind: actions.Action(kind, i) for kind in "FB")
    with pytest.raises(actions.Deadlock) as caught:
        actions.play([[F(0), B(0), F(1), B(1)], [F(0), F(1), B(0), B(1)]])
    assert str(caught.value).splitlines() == [
        "rank 0 cannot begin B0 before B0 of rank 1",
        "rank 1 cannot begin F1 before F1 of rank 0",
    ]


def test_a_message_is_not_taken_for_another(actions):
    F, B = (lambda i, kind=kind: actions.Action(kind, i) for kind in "FB")
    with pytest.raises(actions.Deadlock, match="rank 1 would take F0 for F1"):
        actions.play([[F(0), F(1), B(0), B(1)], [F(1), F(0), B(0), B(1)]])


def test_backward_waits_for_its_own_forward(actions):
    with pytest.raises(actions.Deadlock, match="rank 0 cannot begin B0 before F0 of rank 0"):
        actions.play([[actions.Action("B", 0), actions.Action("F", 0)]])


def test_costs_can_be_given(actions, schedules):
    orders = [schedules.gpipe(rank, 2, 1) for rank in range(2)]
    found = actions.play(orders, {"F": 5, "B": 7})
    assert max(span.end for span in found.spans) == 24
    assert found.idle == pytest.approx(1 / 2)


def test_stages_may_differ_in_size(actions, schedules):
    orders = [schedules.one_f_one_b(rank, 2, 2) for rank in range(2)]
    found = actions.play(orders, sizes=[1, 3])
    ends = {(span.rank, str(span.action)): span.end for span in found.spans}
    assert ends == {
        **{(0, "F0"): 1, (0, "F1"): 2, (0, "B0"): 12, (0, "B1"): 21},
        **{(1, "F0"): 4, (1, "B0"): 10, (1, "F1"): 13, (1, "B1"): 19},
    }
    assert found.idle == pytest.approx(1 - (6 + 18) / (2 * 21))
