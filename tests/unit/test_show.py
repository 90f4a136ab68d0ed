"""The pictures: what is written in them, where, and in which rank's colour."""

from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_utils import show
from nbtorchrun import palette

matplotlib.use("agg")
WHITE = "#ffffff"


@pytest.fixture(autouse=True)
def no_figure_left():
    yield
    plt.close("all")


def run(**collectives):
    """A run whose ranks reported each collective as (before, after), a list for each rank."""
    reports = [
        {"rank": rank, "collective": name, "before": before[rank], "after": after[rank]}
        for name, (before, after) in collectives.items()
        for rank in range(len(before))
    ]
    ranks = {report["rank"] for report in reports}
    return SimpleNamespace(reports=reports, ranks=sorted(ranks))


def boxes(axes):
    """(place, rank) -> (text, colour) for every number drawn, places counted from the left."""
    faces = {
        (round(p.get_x(), 3), p.get_y()): to_hex(p.get_facecolor())
        for p in axes.patches
        if isinstance(p, Rectangle) and p.get_fill() and p.get_height() > 0.5
    }
    lefts = sorted({x for x, _ in faces})
    return {
        (lefts.index(x), int(y)): (text_in(axes, x, y), colour) for (x, y), colour in faces.items()
    }


def text_in(axes, x, y):
    inside = [
        t.get_text()
        for t in axes.texts
        if x < t.get_position()[0] < x + 0.9 and y < t.get_position()[1] < y + 0.8
    ]
    assert len(inside) == 1, inside
    return inside[0]


def stripes(axes):
    return [to_hex(p.get_facecolor()) for p in axes.patches if p.get_height() < 0.5]


def colour(rank):
    return palette.colour(rank).lower()


def tint(rank):
    return palette.ground(palette.colour(rank))["facecolor"].lower()


def drawn():
    return [axes for axes in plt.gcf().axes if axes.texts]


def test_a_number_keeps_the_colour_of_the_rank_it_came_from():
    show.collective(run(gather=([[0.0], [10.0], [20.0]], [[0.0, 10.0, 20.0], [], []])), title="x")
    (axes,) = drawn()
    assert boxes(axes) == {
        (0, 0): ("0", tint(0)),
        (0, 1): ("10", tint(1)),
        (0, 2): ("20", tint(2)),
        (1, 0): ("0", tint(0)),
        (2, 0): ("10", tint(1)),
        (3, 0): ("20", tint(2)),
    }
    assert not stripes(axes)


def test_a_number_made_from_all_has_a_stripe_of_each_rank():
    show.collective(run(all_reduce=([[0.0], [10.0], [20.0]], [[30.0]] * 3)), title="x")
    (axes,) = drawn()
    assert [boxes(axes)[1, rank] for rank in range(3)] == [("30", WHITE)] * 3
    assert stripes(axes) == [colour(0), colour(1), colour(2)] * 3


def test_who_has_nothing_has_an_empty_frame():
    show.collective(run(scatter=([[1.0, 2.0], []], [[1.0], [2.0]])), title="x")
    (axes,) = drawn()
    frames = [p for p in axes.patches if not p.get_fill()]
    assert [int(p.get_y()) for p in frames] == [1]


def test_every_collective_has_its_name_and_every_rank_its_own():
    one = ([[0.0], [10.0]], [[0.0], [0.0]])
    show.collective(run(broadcast=one, all_gather=one, reduce=one), title="Some")
    assert plt.gcf().get_suptitle() == "Some"
    words = [[text.get_text() for text in axes.texts] for axes in drawn()]
    for name, said in zip(("broadcast", "all_gather", "reduce"), words, strict=True):
        assert name in said
    for axes, said in zip(drawn(), words, strict=True):
        assert {"rank 0", "rank 1", "before", "after"} <= set(said)
        assert [to_hex(line.get_color()) for line in axes.lines] == [colour(0), colour(1)]


def test_nothing_is_drawn_outside_its_picture():
    wide = ([[float(10 * r + i) for i in range(8)] for r in range(8)],) * 2
    show.collective(run(all_to_all=wide, again=wide), title="x")
    for axes in drawn():
        right = axes.get_xlim()[1]
        assert all(patch.get_x() + patch.get_width() <= right for patch in axes.patches)
        assert all(text.get_position()[0] <= right for text in axes.texts)


def test_waiting_has_no_rank_s_colour_and_a_line_says_when_the_last_rank_arrives():
    marks = [
        {"rank": rank, "name": name, "start": start, "end": end}
        for rank, late in enumerate((0.04, 0.16))
        for name, start, end in (("work", 0.0, late), ("barrier", late, 0.17))
    ]
    show.timeline(SimpleNamespace(timeline=lambda: marks), title="x")
    (axes,) = plt.gcf().axes
    faces = {to_hex(bars.get_facecolor()[0]) for bars in axes.collections}
    assert palette.ACTIVITY["wait"].lower() in faces
    assert not faces & {each(rank) for each in (colour, tint) for rank in range(8)}
    assert [list(line.get_xdata()) for line in axes.lines] == [[160.0, 160.0]]
    assert [text.get_text() for text in axes.texts] == ["the last arrives"]


def test_a_run_without_collectives_gets_one_sentence():
    nothing = SimpleNamespace(reports=[{"rank": 0, "loss": 1.0}], ranks=[None])
    with pytest.raises(ValueError, match="no rank reported a collective: call report"):
        show.collective(nothing, title="x")


def test_a_strip_of_steps_has_a_panel_for_each_step_and_frames_what_is_sent():
    reports = [
        {"rank": rank, "step": step, "holds": [1, 11], "sends": rank if step == 0 else None}
        for step in range(2)
        for rank in range(2)
    ]
    show.steps(SimpleNamespace(reports=reports), title="x")
    titles = [axes.get_title() for axes in plt.gcf().axes if axes.get_title()]
    assert titles == ["step 1 begins", "at the end"]
    frames = [[p for p in axes.patches if not p.get_fill()] for axes in plt.gcf().axes[:2]]
    assert [len(found) for found in frames] == [2, 0]
    show.steps(SimpleNamespace(reports=reports), title="x", parts=("half",))
    begins = plt.gcf().axes[0]
    assert begins.get_title() == "step 1 begins (half)"
    assert {"chunk", "0", "1"} <= {text.get_text() for text in begins.texts}
    tree = [
        {"rank": 1, "step": 0, "holds": [10, 10], "sends": [0, 1], "to": 0},
        {"rank": 0, "step": 1, "holds": [11, 11], "sends": [0, 1], "to": 1},
        *({"rank": rank, "step": 2, "holds": [11, 11], "sends": None} for rank in range(2)),
    ]
    show.steps(SimpleNamespace(reports=tree), title="x")
    begins = plt.gcf().axes[0]
    assert len([patch for patch in begins.patches if not patch.get_fill()]) == 2
    # The receiver is named beside the row: arrows of two pairs would cross.
    assert "→ rank 0" in [text.get_text() for text in begins.texts]
    # Rank 0 sends nothing in the first step: it is shown with what it reports next.
    assert [text.get_text() for text in begins.texts].count("11") == 2
    with pytest.raises(ValueError, match="no rank reported a step"):
        show.steps(SimpleNamespace(reports=[]), title="x")


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_rank_holds_what_the_formulas_of_zero_say(ranks):
    # Rajbhandari et al. 2020, figure 1: bytes per parameter, mixed precision and Adam.
    show.zero_stages(ranks=ranks, title="x")
    shown = [axes.get_title(loc="left") for axes in plt.gcf().axes]
    formulas = [16, 4 + 12 / ranks, 2 + 14 / ranks, 16 / ranks]
    expected = [f"stage {n}: {held:g} bytes on each rank" for n, held in enumerate(formulas)]
    assert shown == expected


def test_the_memory_of_each_gpu_is_drawn_over_the_number_of_gpus():
    show.memory_per_gpu({"7B": 7_000_000_000, "70B": 70_000_000_000}, limit=80, title="x")
    small, large = plt.gcf().axes
    ends = [(line.get_ydata()[0], line.get_ydata()[-1]) for line in small.get_lines()[:4]]
    assert [first for first, _ in ends] == pytest.approx([112] * 4)
    assert [last for _, last in ends] == pytest.approx([112, 28.082, 14.096, 0.1094], rel=1e-3)
    assert large.get_lines()[0].get_ydata()[0] == pytest.approx(1120)
