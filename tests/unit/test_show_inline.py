"""What a notebook saves of a figure: sharp, small, and described in words."""

import base64
import io

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from course_utils import paths, show
from course_utils.show import inline

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def no_figure_left():
    yield
    plt.close("all")


def test_curves_are_described_by_what_is_written_on_them():
    axes = show.style.axes(2, "The ring is faster", "bytes", "seconds")
    axes.plot([1, 2], label="ring")
    axes.plot([2, 1], label="tree")
    axes.legend()
    axes.text(0, 1, "they cross")
    assert inline.describe(axes.figure) == (
        "The ring is faster; horizontal axis: bytes; vertical axis: seconds; legend: ring, tree; "
        "marked: they cross."
    )


def test_a_diagram_is_described_by_its_words_and_not_by_its_numbers():
    one, two = show.style.panels(1, 2, 2, "How $N$ ranks share", bare=True)
    for axes, words in ((one, ("rank 0", "17")), (two, ("rank 0", "rank 1", "rank 1"))):
        for word in words:
            show.style.centred(axes, 0, 0, word)
    assert inline.describe(one.figure) == (
        "How N ranks share. with the words: rank 0. with the words: rank 0, rank 1."
    )


def test_rows_without_a_named_axis_give_their_names():
    axes = show.style.axes(2, "Who waits", "ms")
    axes.barh([0, 1], [1, 2])
    show.style.rank_ticks(axes, range(2))
    axes.figure.canvas.draw()
    assert "rows: rank 0, rank 1" in inline.describe(axes.figure)


def test_a_saved_figure_is_sharp_and_described():
    source = (
        "from course_utils import show\n"
        "show.series({'a': [1, 2]}, title='Loss', x='steps', y='nats')"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(book, resources={"metadata": {"path": paths.ROOT}}).execute()
    (output,) = (o for o in book.cells[0].outputs if o.output_type == "display_data")
    said = output.metadata["image/png"]
    picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
    assert said["alt"] == "Loss; horizontal axis: steps; vertical axis: nats."
    assert picture.size == pytest.approx((2 * said["width"], 2 * said["height"]), abs=2)
