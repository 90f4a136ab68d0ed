"""Each notebook, opened and run in JupyterLab as a student would."""

import pytest

from course_utils import paths

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
SLIDERS = {"03_ddp": 1, "04_ring_allreduce": 1, "05_fsdp": 2}
LONGEST = 600  # seconds a notebook may take on loaded cores


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.timeout(LONGEST + 120)
def test_a_notebook_runs_from_top_to_bottom(open_notebook, lab, path):
    page = open_notebook(lab.add(path))
    page.screenshot("1_start")
    page.command("notebook:clear-all-cell-outputs")
    assert set(page.numbers()) == {None}

    page.run_all()
    page.wait_until(lambda: page.has_ended() or (is_half_done(page) and page.show_lanes()), LONGEST)
    page.screenshot("2_middle")
    page.wait_until_ended(LONGEST)
    page.show_cell([cell["source"] for cell in page.cells()].index("proofs.table()"))
    page.screenshot("3_end")

    cells = page.cells()
    assert [cell["errors"] for cell in cells if cell["errors"]] == []
    assert [cell["number"] for cell in cells] == list(range(1, len(cells) + 1))
    each_slider_changes_its_picture(page, count=SLIDERS.get(path.stem, 0))
    assert page.too_wide() == []
    assert page.errors == []


def is_half_done(page):
    numbers = page.numbers()
    return 2 * numbers.count(None) <= len(numbers)


def each_slider_changes_its_picture(page, count):
    handles = page.tab.locator(".widget-interact .noUi-handle")
    assert handles.count() == count
    pictures = page.tab.locator(".widget-interact img")
    for handle in handles.all():
        before = pictures.get_attribute("src")
        handle.press("ArrowRight")
        page.wait_until(
            lambda before=before: pictures.count() == 1 and pictures.get_attribute("src") != before
        )
        page.screenshot("4_slider")
