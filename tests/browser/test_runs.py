"""Runs that are watched: the lanes of their ranks, the stop button, and what stays of a failure."""

IMPORT = "import course_utils"
HELLO = '%%torchrun -n 2 browser_hello.py\nprint("hello")'
ANSWER = "print(6 * 7)"
TRAINING = """%%torchrun -n 4 --timeout 250 browser_training.py
import time
from pathlib import Path
import torch.distributed as dist
from course_utils.worker import init, report
init()
print("rank", dist.get_rank(), "trains", flush=True)
for step in range(1, 1001):
    report(step=step, total=1000, loss=2 / step)
    time.sleep(0.1)
    if Path("{seen}").exists():
        break"""
HUNG = """%%torchrun -n 2 --timeout 250 --stall 250 browser_hung.py
import time
import torch.distributed as dist
from course_utils.worker import init
init()
if dist.get_rank() == 1:
    time.sleep(600)
dist.barrier()"""
FAILING = """%%torchrun -n 2 browser_failing.py
import torch.distributed as dist
from course_utils.worker import init
init()
if dist.get_rank() == 1:
    raise ValueError("no batch left")
dist.barrier()"""


def test_while_a_run_lives_each_rank_has_a_lane(open_cells, tmp_path):
    seen = tmp_path / "seen"
    page = open_cells("lanes", IMPORT, HELLO, TRAINING.format(seen=seen))
    page.run_cells(0, 1)
    page.start_cell(2)
    lanes = page.tab.locator('.course-run .course-lane[data-state="running"]')
    page.wait_until(lambda: lanes.filter(has_text="trains").count() == 4)
    assert [lane.get_attribute("data-rank") for lane in lanes.all()] == ["0", "1", "2", "3"]
    page.wait_until(page.tab.locator(".course-progress").is_visible)
    page.wait_until(page.tab.locator(".course-curve polyline").first.is_visible)
    page.screenshot("middle")
    assert page.too_wide() == []
    seen.touch()
    page.wait_until_ended()
    page.screenshot("end")
    assert page.tab.locator(".course-run").count() == 0
    assert "4 ranks · gloo · cpu · ok" in page.cells()[2]["text"]
    assert page.errors == []


def test_a_failed_run_shows_its_verdict_and_the_stop_button_ends_a_hung_one(open_cells, lab):
    page = open_cells("failures", IMPORT, FAILING, HUNG, ANSWER)
    page.run_cells(0, 1)
    page.screenshot("verdict")
    assert "ValueError: no batch left" in page.cells()[1]["text"]
    card = page.tab.locator('.course-card[data-kind="raised"]')
    assert "rank 1" in card.inner_text()
    assert 'raise ValueError("no batch left")' in card.inner_text()
    assert page.tab.locator(".course-run").count() == 0
    assert page.too_wide() == []

    before = lab.processes()
    page.start_cell(2)
    waiting = page.tab.locator('.course-run .course-lane[data-state="waiting"]')
    page.wait_until(lambda: waiting.filter(has_text="barrier").count() == 1)
    assert waiting.get_attribute("data-rank") == "0"
    page.press("interrupt")
    page.wait_until_ended()  # its own deadlines are later
    page.screenshot("stopped")
    assert "the run was stopped; its ranks have ended" in page.cells()[2]["text"]
    assert page.tab.locator(".course-run").count() == 0
    page.wait_until(lambda: not lab.processes() - before)
    page.run_cells(3)
    assert page.cells()[3]["text"] == "42\n"
