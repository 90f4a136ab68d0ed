import matplotlib.pyplot as plt
import pytest

from course_utils import palette, show
from course_utils.show.matrix_grid import Matrix, parts


@pytest.fixture(autouse=True)
def no_window(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def test_the_parts_of_a_cut_matrix_fill_it_and_have_their_ranks_colours():
    found = parts(Matrix("W", 6, 12, "columns"), ranks=3)
    assert [name for name, *_ in found] == ["W0", "W1", "W2"]
    assert [part[1:5] for part in found] == [(0, 0, 4, 6), (4, 0, 4, 6), (8, 0, 4, 6)]
    assert [part[5] for part in found] == [palette.colour(rank) for rank in range(3)]


def test_rows_are_cut_from_top_to_bottom():
    found = parts(Matrix("W", 6, 12, "rows"), ranks=2)
    assert [part[1:5] for part in found] == [(0, 0, 12, 3), (0, 3, 12, 3)]


def test_every_part_and_operator_is_written_and_sizes_below():
    line = [Matrix("x", 2, 6), "@", Matrix("W", 6, 4, "columns"), "=", Matrix("y", 2, 4, rank=1)]
    show.matrices([line, line], ranks=2, title="a product")
    figure = plt.gcf()
    assert figure.get_suptitle() == "a product"
    for axes in figure.axes:
        written = {text.get_text() for text in axes.texts}
        assert written == {"x", "@", "W0", "W1", "=", "y", "2 x 6", "6 x 4", "2 x 4"}


def test_a_size_that_the_ranks_do_not_divide():
    with pytest.raises(ValueError, match="W: 5 ranks do not divide 12 columns"):
        show.matrices([[Matrix("W", 6, 12, "columns")]], ranks=5, title="")
