"""Notebooks in JupyterLab, as a student sees them: opened, and two of them run to the end.

Those with a slider or with runs that fail are opened; `--run-all` opens and runs all.
"""

import pytest

from course_utils import paths

NOTEBOOKS = {path.stem: path for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))}
RUN = [
    "00_processes_and_collectives",  # runs that fail, and runs that are stopped
    "03_ddp",  # a slider, and a run on links
]
SLIDERS = {"03_ddp": 1, "04_ring_allreduce": 3, "05_fsdp": 5, "09_pipeline_parallel": 1}
SLIDERS |= {"16_planning_a_run": 4}
LONGEST = 600  # seconds a notebook may take on loaded cores


def pytest_generate_tests(metafunc):
    """All notebooks, or those that have something to move or to watch."""
    if "name" in metafunc.fixturenames:
        everything = metafunc.config.getoption("run_all")
        metafunc.parametrize("name", NOTEBOOKS if everything else sorted({*RUN, *SLIDERS}))


@pytest.mark.timeout(LONGEST + 120)
def test_a_notebook_is_shown_without_an_error_and_runs(request, open_notebook, lab, name):
    page = open_notebook(lab.add(NOTEBOOKS[name]))
    page.screenshot("1_start")
    assert page.shown_badly() == []
    proven = ["proofs.table()" in cell["source"] for cell in page.cells()]
    page.show_cell(proven.index(True))
    page.screenshot("3_end")
    if name in RUN or request.config.getoption("run_all"):
        run_from_top_to_bottom(page)
        each_slider_changes_its_picture(page, count=SLIDERS.get(name, 0))
        assert page.shown_badly() == []
    assert page.errors == []


def run_from_top_to_bottom(page):
    page.command("notebook:clear-all-cell-outputs")
    assert set(page.numbers()) == {None}
    page.run_all()
    page.wait_until(lambda: page.has_ended() or (is_half_done(page) and page.show_lanes()), LONGEST)
    page.screenshot("2_middle")
    page.wait_until_ended(LONGEST)

    cells = page.cells()
    assert [(cell["source"], cell["errors"]) for cell in cells if cell["errors"]] == []
    assert [cell["number"] for cell in cells] == list(range(1, len(cells) + 1))


def is_half_done(page):
    numbers = page.numbers()
    return 2 * numbers.count(None) <= len(numbers)


def each_slider_changes_its_picture(page, count):
    widgets = page.tab.locator(".widget-interact")
    assert widgets.locator(".noUi-handle").count() == count
    for widget in widgets.all():
        picture = widget.locator("img")
        for handle in widget.locator(".noUi-handle").all():
            before = picture.get_attribute("src")
            handle.press("ArrowRight")
            page.wait_until(
                lambda picture=picture, before=before: (
                    picture.count() == 1 and picture.get_attribute("src") != before
                )
            )
            page.screenshot("4_slider")
