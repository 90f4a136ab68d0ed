"""Notebooks as nbconvert and GitHub show them: every cell open, and nothing given away."""

import re

import nbformat
import pytest
from nbconvert import HTMLExporter

from course_utils import paths

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))

ASKS = re.compile(r"^> \*\*Predict|\.compare\(", re.MULTILINE)  # the other cells take long to draw


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_answer_to_a_prediction_is_on_the_page(path):
    book = nbformat.read(path, 4)
    book.cells = [each for each in book.cells if ASKS.search(each.source)]
    page, _ = HTMLExporter(template_name="basic").from_notebook_node(book)
    words = re.sub(r"<[^>]*>", "", page)
    assert "guess.compare(" in words
    assert not re.search(r"\.compare\([^)]*(&quot;|&#39;|[\"'])[a-e]\b", words)
    asked = re.findall(r"<blockquote>\s*<p><strong>Predict\..*?</blockquote>", page, re.DOTALL)
    assert asked
    for question in asked:  # a line for each answer
        for answer in re.findall(r"\([b-e]\) [^<]*", question):
            assert f"<li>{answer}" in question, question
