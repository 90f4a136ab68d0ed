"""A slider on an open page: its values in order, and a picture that is drawn once."""

import pytest

from tests.launch.page import text

SLIDER = """
import matplotlib.pyplot as plt
from course_utils import show
from ipywidgets import Output, SelectionSlider
from ipywidgets.widgets.widget import _instances

drawn = []


def draw(gpus, link):
    drawn.append((gpus, link))
    print(gpus, "GPUs")
    show.style.axes(1.0, f"{gpus} GPUs").plot([1, 2])
    plt.show()


show.style.slider(draw, gpus={str(n): n for n in (512, 64, 1024)}, link={"slow": "b", "fast": "a"})
gpus, link = [each for each in _instances.values() if isinstance(each, SelectionSlider)][-2:]
(place,) = [each for each in _instances.values() if isinstance(each, Output)]
print([value for _, value in gpus.options], gpus.value, link.value, drawn)
"""
MOVE = """
first = place.outputs
gpus.value = 64
second = place.outputs
gpus.value = 512
print(drawn, place.outputs == first != second, second[0]["text"], len(second[1]["data"]) > 1)
"""


@pytest.fixture(autouse=True)
def no_rank_is_left(no_rank_of_the_page_is_left):
    """As in all tests; no rank is started here."""


def test_a_slider_has_its_values_in_order_and_draws_each_picture_once(page):
    assert text(page.run(SLIDER)) == "[64, 512, 1024] 512 b [(512, 'b')]\n"
    sent = page.run(MOVE)
    assert text(sent) == "[(512, 'b'), (64, 'b')] True 64 GPUs\n True\n"
    states = [each["content"].get("data", {}).get("state", {}) for each in sent]
    classes = [state["_dom_classes"] for state in states if "_dom_classes" in state]
    assert classes == [["course-busy"], []]  # grey while it is drawn, and only then
    assert page.run("show.style.slider(draw, gpus={'2': 2}, link={'a': 'a'})", cell=None) == []
