"""Words in pictures can be read, on a light page and on a dark one, which inverts them."""

from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from course_utils import paths, show
from course_utils.show import style
from nbtorchrun import palette

matplotlib.use("agg")
AA = 4.5  # WCAG 2.2, for words of usual size
PAGES = ("nbtorchrun/display/page.css", "website/static/course.css")
FILTER = "filter: invert(.88) hue-rotate(180deg)"
LUMINANCE = np.array([0.213, 0.715, 0.072])  # of hue-rotate, by the standard of CSS filters
RANKS = range(len(palette.COLOURS))
EVERY = [*palette.COLOURS, *palette.ACTIVITY.values(), *palette.MEMORY.values()]


@pytest.mark.parametrize("colour", palette.ACTIVITY.values())
def test_an_activity_has_an_edge_that_is_seen(colour):
    assert contrast(np.ones(3), on_light(to_rgb(palette.outline(colour)))) >= 3


def test_no_colour_means_two_things():
    assert len({*map(str.upper, EVERY)}) == len(EVERY)


@pytest.fixture(autouse=True)
def no_figure_left():
    yield
    plt.close("all")


def on_light(rgb):
    return np.array(rgb)


def on_dark(rgb):
    """What FILTER makes of a colour; half a turn of the hue keeps `LUMINANCE`."""
    inverted = 0.88 + (1 - 2 * 0.88) * np.array(rgb)
    return np.clip(2 * (LUMINANCE @ inverted) - inverted, 0, 1)


def contrast(one, other):
    """Of two colours, by WCAG 2.2."""
    lights = []
    for rgb in (one, other):
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ (0.2126, 0.7152, 0.0722) + 0.05)
    return max(lights) / min(lights)


def words_and_grounds():
    """(words, their colour, the colour of what they stand on) for all words in all figures."""
    for axes in (axes for number in plt.get_fignums() for axes in plt.figure(number).axes):
        axes.figure.canvas.draw()
        for text in filter(lambda text: text.get_text(), axes.texts):
            window = text.get_window_extent()
            at = (window.x0 + window.x1) / 2, (window.y0 + window.y1) / 2
            yield text.get_text(), to_rgb(text.get_color()), np.array(ground_at(axes, at))


def ground_at(axes, at):
    """What lies at a point of a figure: paint over paint, on white."""
    seen = np.ones(3)
    for patch in axes.patches:
        if patch.get_fill() and patch.contains_point(at):
            *paint, alpha = patch.get_facecolor()
            seen = alpha * np.array(paint) + (1 - alpha) * seen
    for bars in axes.collections:
        for path, face in zip(bars.get_paths(), bars.get_facecolor(), strict=True):
            if bars.get_transform().transform_path(path).contains_point(at):
                seen = face[3] * face[:3] + (1 - face[3]) * seen
    return seen


@pytest.mark.parametrize("page", PAGES)
def test_a_dark_page_inverts_figures_as_computed_here(page):
    assert FILTER in (paths.ROOT / page).read_text()


@pytest.mark.parametrize("seen", [on_light, on_dark])
@pytest.mark.parametrize("colour", EVERY)
def test_words_on_the_ground_of_a_colour(colour, seen):
    ground = palette.ground(colour)
    assert contrast(seen(to_rgb("black")), seen(to_rgb(ground["facecolor"]))) >= AA
    assert ground["edgecolor"] == colour  # by its frame a rank is still known


def test_a_ground_is_the_share_of_a_colour_over_white():
    assert palette.ground("#0072B2", 1)["facecolor"] == "#0072B2"
    assert palette.ground("#0072B2", 0)["facecolor"] == "#FFFFFF"
    assert to_rgb(palette.ground("#000000", 0.4)["facecolor"]) == pytest.approx((0.6,) * 3)
    assert to_rgba(palette.ground("#FF0000", 0.2)["facecolor"]) == pytest.approx((1, 0.8, 0.8, 1))


@pytest.mark.parametrize("seen", [on_light, on_dark])
@pytest.mark.parametrize("ink", [palette.NEUTRAL, palette.WRONG, style.GREY])
def test_coloured_words_on_the_page(ink, seen):
    assert contrast(seen(to_rgb(ink)), seen(to_rgb("white"))) >= AA


def collective():
    held = [[float(10 * rank)] for rank in RANKS]
    sums = [[280.0]] * len(RANKS)
    reports = [
        {"rank": rank, "collective": name, "before": before[rank], "after": after[rank]}
        for name, before, after in (("gather", held, held), ("all_reduce", held, sums))
        for rank in RANKS
    ]
    show.collective(SimpleNamespace(reports=reports, ranks=list(RANKS)), title="x")


def steps():
    reports = [
        {"rank": rank, "step": step, "holds": [1, 11, 111, 1111], "sends": rank}
        for step in range(2)
        for rank in range(4)
    ]
    show.steps(SimpleNamespace(reports=reports), title="x")


def schedules():
    spans = [
        (rank, f"{kind}{place}", place, place + 1)
        for rank in RANKS
        for place, kind in enumerate("FBW")
    ]
    show.schedules({"one": spans}, title="x", unit="seconds")


def memory():
    show.memory_per_gpu({"7B": 7_000_000_000}, limit=80, title="x")


@pytest.mark.parametrize("draw", [collective, steps, schedules, memory])
def test_words_in_a_picture(draw, monkeypatch):
    first = lambda one, **choices: one(**{k: next(iter(v.values())) for k, v in choices.items()})
    monkeypatch.setattr(style, "slider", first)  # its pictures are drawn without a browser too
    draw()
    found = list(words_and_grounds())
    assert found
    for words, ink, ground in found:
        for seen in (on_light, on_dark):
            assert contrast(seen(ink), seen(ground)) >= AA, (words, ink, ground)
