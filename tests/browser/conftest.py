"""A browser and a JupyterLab, one of each for all tests of this folder."""

import os
import shutil
from importlib.util import find_spec

import pytest

from tests.browser.lab import Lab
from tests.browser.page import Page

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
ARGUMENTS += ["--disable-background-networking"]


@pytest.fixture(scope="package")
def browser():
    """Chromium, driven by Playwright."""
    program = shutil.which("chromium")
    if not program or not find_spec("playwright"):
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(
            f"no {'Playwright' if program else 'chromium'}: notebooks cannot be seen in a browser"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def lab(browser, tmp_path_factory):
    """JupyterLab, with nothing in its folder."""
    running = Lab(tmp_path_factory.mktemp("lab"))
    yield running
    running.close()


@pytest.fixture(scope="package")
def page(browser, lab):
    """JupyterLab in the browser."""
    return Page(browser, lab)


@pytest.fixture
def open_notebook(page):
    """Open a notebook by its name in JupyterLab's folder."""

    def open_(name: str) -> Page:
        page.open(name)
        return page

    yield open_
    page.close()


@pytest.fixture
def open_cells(open_notebook, lab):
    """Open a new notebook, by its name and its code cells."""
    return lambda name, *cells: open_notebook(lab.write(f"{name}.ipynb", cells))


@pytest.fixture(autouse=True)
def no_rank_is_left(lab):
    """After each test its kernels are shut down, and no process that they started lives."""
    yield
    alive = lab.shut_kernels_down()
    assert not alive, f"still alive: {alive}"
