"""Each exercise: its stub is to do, our solution passes, each plausible mistake is named.

There are a thousand mistakes. `--all-mistakes` tries all of them, which takes a quarter of an hour;
without it, five of each exercise are tried.
"""

import pytest

from course_utils import check
from nbtorchrun.errors import InputError
from tests.lessons.answers import EXERCISES, arguments, changed, checked, lesson, stub

FEWEST = 5  # wrong answers, one for each kind of mistake that a student might make
RIGHT = [
    pytest.param(number, parts, id=f"{number} {way}")
    for number in EXERCISES
    for way, *parts in lesson(number).RIGHT
]


def pytest_generate_tests(metafunc):
    """All mistakes, or a few of each exercise, from its first to its last."""
    if "said" in metafunc.fixturenames:
        tried = {number: lesson(number).WRONG for number in EXERCISES}
        if not metafunc.config.getoption("all_mistakes"):
            tried = {number: wrong[:: -(-len(wrong) // FEWEST)] for number, wrong in tried.items()}
        mistakes = [
            pytest.param(number, parts, said, id=f"{number} {mistake}")
            for number, wrong in tried.items()
            for mistake, *parts, said in wrong
        ]
        metafunc.parametrize(("number", "parts", "said"), mistakes)


@pytest.mark.parametrize("number", EXERCISES)
def test_the_stub_of_the_notebook_is_to_do(number):
    assert checked(number, stub(EXERCISES[number])).state == "to do"


@pytest.mark.parametrize("number", EXERCISES)
def test_a_stub_takes_what_ours_takes(number):
    """Or the cells that follow, which were written for ours, would stop on a right answer."""
    asked, ours = arguments(stub(EXERCISES[number])), arguments(EXERCISES[number].ours)
    assert asked
    assert {name: ours[name] for name in asked} == asked


@pytest.mark.parametrize("number", EXERCISES)
def test_our_solution_passes_and_says_what_was_proven(number):
    found = checked(number, EXERCISES[number].ours)
    assert found.state == "passed", str(found)
    assert found.lines[: len(EXERCISES[number].proven)] == [*EXERCISES[number].proven]


@pytest.mark.parametrize(("number", "parts"), RIGHT)
def test_an_answer_that_is_right_in_another_way_passes(number, parts):
    found = checked(number, changed(number, *parts))
    assert found.state == "passed", str(found)


def test_a_plausible_mistake_is_named(number, parts, said):
    found = checked(number, changed(number, *parts))
    assert found.state == "not yet", str(found)
    assert said in str(found)
    assert f"%solution {number} shows ours." in str(found)


@pytest.mark.parametrize("number", EXERCISES)
def test_there_are_enough_mistakes(number):
    assert len(lesson(number).WRONG) >= FEWEST


@pytest.mark.parametrize("part", ["a part that is not there", "dist"])
def test_a_part_that_does_not_stand_once_in_the_solution_is_refused(part):
    with pytest.raises(ValueError, match=r"stands \d+ times in the answer to 10\.3"):
        changed("10.3", part, "")


@pytest.mark.parametrize("number", ["99.9", "10.9", "x", "", "10", "../../x"])
def test_an_exercise_that_is_not_there(number):
    with pytest.raises(InputError, match="there is no exercise"):
        check(number)


def test_a_number_without_quotes_is_told_to_be_in_quotes():
    with pytest.raises(InputError, match="exercise in quotes"):
        check(10.4)


def test_a_second_argument_is_told_where_the_answer_belongs():
    with pytest.raises(InputError, match=r"%%worker exercise_10_3\.py, run that cell, and then"):
        check("10.3", print)
