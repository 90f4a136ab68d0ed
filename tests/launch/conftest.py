"""What the tests of a page share: one kernel for all tests of a file."""

import psutil
import pytest

from tests.launch.page import Page


@pytest.fixture(scope="module")
def page():
    """A kernel with the course, as an open page has it."""
    page = Page()
    yield page
    page.close()


@pytest.fixture
def no_rank_of_the_page_is_left(page):
    """After the test no rank that the kernel started lives; its agent stays."""
    yield
    _, alive = psutil.wait_procs(page.ranks(), timeout=10)
    for rank in alive:
        rank.kill()
    assert not alive, f"still alive: {alive}"
