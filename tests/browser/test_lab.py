"""What `./run.sh lab` opens: a student's copies, settings that help to read, links that lead on."""

import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

from course_utils import paths
from tests import kernel_ports
from tests.browser.lab import environment
from tests.browser.page import LAB_IS_READY, PANEL, SCREENSHOTS
from tests.unit.run_sh.checkout import write_program
from tests.waiting import wait_for
from tools import copies

pytestmark = pytest.mark.timeout(300)
# As run.sh calls Python; JupyterLab gets ports that no other test uses.
PYTHON = """#!/usr/bin/env bash
[ "$1 $2" != "-m jupyterlab" ] || set -- {ports} "${{@:3}}"
exec {python} "$@"
"""
OPTIONS = ["--no-browser", "--allow-root", "--ServerApp.port=0"]
OPTIONS += ["--LabApp.expose_app_in_browser=True"]
FIRST = "00_processes_and_collectives.ipynb"
PATH = f"() => {PANEL}?.context?.path"
FOUND = f"""target => {PANEL}?.node.querySelector(`.jp-MarkdownOutput a[href*="${{target}}"]`)"""
OPEN = """async path => {
    await window.jupyterapp.commands.execute("docmanager:open", { path })
}"""
WIDEST_PROSE = """() => Math.max(...[...document.querySelectorAll(".jp-MarkdownOutput > p")]
    .map(each => each.getBoundingClientRect().width / parseFloat(getComputedStyle(each).fontSize)))
"""


@pytest.fixture(autouse=True)
def no_rank_is_left():
    """The kernel and its helper end with their JupyterLab."""


@pytest.fixture(scope="module")
def student(browser, tmp_path_factory):
    """What a student sees after the first `./run.sh lab`: the page, and the folder of copies."""
    folder = tmp_path_factory.mktemp("student")
    made = PYTHON.format(
        ports=shlex.quote(kernel_ports.__file__), python=shlex.quote(sys.executable)
    )
    python = write_program(folder / "python", made)
    own = environment(folder) | {"COURSE_PYTHON": str(python)}
    del own["JUPYTER_PATH"]  # run.sh sets it
    log = open(folder / "log", "w+")  # noqa: SIM115
    server = subprocess.Popen(
        [paths.ROOT / "run.sh", "lab", *OPTIONS],
        env=own,
        stdout=log,
        stderr=log,
    )
    address = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*token=\w+")

    def said() -> str:
        return (folder / "log").read_text()

    assert wait_for(lambda: address.search(said()), 120), said()
    tab = browser.new_page(viewport={"width": 1366, "height": 768})
    tab.goto(address.search(said())[0])
    tab.wait_for_function(LAB_IS_READY, timeout=120_000)
    tab.wait_for_function(f"() => {PANEL}?.content?.model?.cells", timeout=120_000)
    yield SimpleNamespace(tab=tab, my=folder / "course_home" / "my")
    tab.close()
    server.terminate()
    server.wait(60)
    log.close()


def test_the_first_page_is_the_first_notebook_easy_to_read_and_asks_nothing(student):
    tab = student.tab
    tab.wait_for_selector(".jp-DirListing-itemText")
    assert tab.evaluate(PATH) == FIRST
    tab.wait_for_selector(".jp-MarkdownOutput > p", timeout=120_000)
    tab.wait_for_timeout(3000)  # JupyterLab would ask now whether it may fetch news
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=SCREENSHOTS / "lab-first-page.png")
    assert "news" not in tab.locator("body").inner_text().lower()
    assert tab.locator(".jp-DirListing-headerItem:visible").all_inner_texts() == ["Name"]
    cut = (
        "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
    )
    assert tab.locator(".jp-DirListing-itemText").evaluate_all(cut) == []
    assert tab.evaluate(WIDEST_PROSE) < 50  # in em; before any cell has run


def test_every_kind_of_link_opens_what_it_names(student):
    where = {link: path.name for path in student.my.glob("*.ipynb") for link in links(path)}
    assert len(where) > 5
    for link, name in where.items():
        tab, (target, _, _) = student.tab, link.partition("#")
        tab.evaluate(OPEN, name)
        tab.wait_for_function(f"name => {PANEL}?.context?.path === name", arg=name)
        tab.wait_for_function(FOUND, arg=target, timeout=120_000)
        tab.evaluate(f"target => {{ ({FOUND})(target).click() }}", target)
        tab.wait_for_function(f"path => {PANEL}?.context?.path === path", arg=target)
        assert tab.locator(".jp-Dialog").count() == 0, f"{link} in {name}"
    tab.screenshot(path=SCREENSHOTS / "lab-link.png")


def test_every_link_of_every_copy_leads_to_a_file_in_the_folder_that_jupyterlab_serves(tmp_path):
    copies.update(tmp_path)
    for path in tmp_path.glob("*.ipynb"):
        for link in links(path):
            assert ".." not in link, f"{link} in {path.name}"
            assert (tmp_path / link.partition("#")[0]).is_file(), f"{link} in {path.name}"


def links(path) -> set[str]:
    """The links of a notebook's text that lead to files."""
    cells = nbformat.read(path, 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:|#", link)}
