"""The map on the README and the site's home page: it says what the notebooks say."""

import operator
import re
from xml.etree import ElementTree

import pytest

from course_utils import paths
from tests.unit.run_sh.checkout import ROOT
from website import map as course_map
from website import pages

SVG = {"": "http://www.w3.org/2000/svg"}


def test_the_picture_and_the_table_are_as_the_notebooks_are_now():
    assert course_map.PICTURE.read_text(encoding="utf-8") == course_map.picture(), (
        "python -m website.map"
    )
    readme = course_map.README.read_text(encoding="utf-8")
    assert readme == course_map.filled(readme), "python -m website.map"
    assert f"]({course_map.PICTURE.relative_to(ROOT)})" in readme


def test_every_notebook_is_a_stop_in_its_order():
    assert [*course_map.STOPS] == [path.name[:2] for path in pages.notebooks()]


@pytest.mark.parametrize("number", course_map.STOPS)
def test_a_stop_needs_what_its_notebook_says_it_needs(number):
    said = re.search(
        r"\*\*You need\*\*(.*?)\*\*Time\*\*", course_map._first_cell(number), re.DOTALL
    )[1]
    said = set(re.findall(r"\b\d\d\b", re.sub(r"\(\S+?\)", "", said)))  # but no address
    stop = course_map.STOPS[number]
    assert set(stop.needs.split()) <= said <= {*stop.needs.split(), *stop.parts.split()}


def test_an_arrow_leads_from_what_is_needed_down_to_who_needs_it():
    for pairs, which in ((course_map.ARROWS, "needs"), (course_map.DASHED, "parts")):
        for one, other in (pair.split("-") for pair in pairs.split()):
            assert one in getattr(course_map.STOPS[other], which).split(), f"{one} to {other}"
            assert course_map.STOPS[one].at[1] < course_map.STOPS[other].at[1], f"{one} to {other}"


def test_whatever_a_stop_needs_is_found_by_going_back_along_the_arrows():
    before = {number: set() for number in course_map.STOPS}
    for pair in sorted(
        course_map.ARROWS.split(), key=lambda pair: course_map.STOPS[pair[3:]].at[1]
    ):
        before[pair[3:]] |= {pair[:2]} | before[pair[:2]]
    for number, stop in course_map.STOPS.items():
        drawn = before[number] | {
            pair[:2] for pair in course_map.DASHED.split() if pair[3:] == number
        }
        drawn |= set().union(*(before[each] for each in drawn))
        assert set(stop.needs.split()) <= drawn, number


def test_words_stand_on_boxes_and_can_be_read_there_on_any_page():
    drawn = ElementTree.fromstring(course_map.picture())
    sides = ("x", "y", "width", "height")
    boxes = [{k: float(box.get(k)) for k in sides} for box in drawn.iterfind("rect", SVG)]
    for words in drawn.iterfind("text", SVG):
        x, y = float(words.get("x")), float(words.get("y"))
        width = 7.2 * len(words.text) if words.get("font-weight") else 7.3 * len(words.text)
        assert any(
            box["x"] <= x <= x + width <= box["x"] + box["width"] + 2
            and box["y"] < y < box["y"] + box["height"]
            for box in boxes
        ), words.text
    for box in drawn.iterfind("rect", SVG):
        assert contrast(course_map.INK, box.get("fill")) >= 4.5
    for page in ("#ffffff", "#0d1117"):
        assert contrast(course_map.LINE, page) >= 3


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 computes it."""
    lights = []
    for colour in (one, other):
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        lights.append(sum(map(operator.mul, (0.2126, 0.7152, 0.0722), linear)))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_the_sections_that_the_ways_name_are_there():
    for title in re.findall(
        r"\*([^*]+\?)\*", course_map.ways().replace("\n  ", " ").replace("**", "")
    ):
        books = [path.read_text(encoding="utf-8") for path in paths.NOTEBOOKS.glob("*.ipynb")]
        assert any(f"# {title}" in text for text in books), title
