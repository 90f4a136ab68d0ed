"""The links of the web site that open a notebook on Colab and Kaggle."""

import pytest

from course_utils import paths
from website import pages

NAME = "03_ddp.ipynb"
COLAB = f"https://colab.research.google.com/github/them/it/blob/main/notebooks/{NAME}"
KAGGLE = "https://www.kaggle.com/kernels/welcome?src="
KAGGLE += f"https://github.com/them/it/blob/main/notebooks/{NAME}"


@pytest.mark.parametrize("end", ["", "/", ".git"])
def test_a_notebook_s_page_opens_it_on_colab_and_kaggle(monkeypatch, end):
    monkeypatch.setattr(pages, "REPOSITORY", f"https://github.com/them/it{end}")
    title, links, question = pages.prepared(paths.NOTEBOOKS / NAME)["cells"][0]["source"].split(
        "\n\n"
    )[:3]
    assert title.startswith("# 03 · ")
    assert f"[Colab]({COLAB})" in links
    assert f"[Kaggle]({KAGGLE})" in links
    assert question.startswith("*")


@pytest.mark.parametrize("repository", ["", "https://example.com/them/it", "git@github.com:x/y"])
def test_there_are_no_links_where_colab_could_not_find_the_notebook(monkeypatch, repository):
    monkeypatch.setattr(pages, "REPOSITORY", repository)
    first = pages.prepared(paths.NOTEBOOKS / NAME)["cells"][0]["source"]
    assert "olab" not in first
    assert first.count("# 03") == 1
