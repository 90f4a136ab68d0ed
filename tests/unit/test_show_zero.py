import pytest

from course_utils.show.zero import bytes_held


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_rank_holds_what_the_formulas_of_zero_say(ranks):
    # Rajbhandari et al. 2020, figure 1: bytes a parameter, mixed precision and Adam.
    formulas = [16, 4 + 12 / ranks, 2 + 14 / ranks, 16 / ranks]
    assert [bytes_held(stage, ranks) for stage in range(4)] == pytest.approx(formulas)
