"""Runs that are watched: the lanes of their ranks, the stop button, and what stays of a failure."""

import pytest

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]
IMPORT = "import course_utils"
HELLO = '%%torchrun -n 2 browser_hello.py\nprint("hello")'
ANSWER = "print(6 * 7)"
TRAINING = """%%torchrun -n 4 browser_training.py
import time
from course_utils.worker import init, report
init()
for step in range(1, 61):
    print("step", step, flush=True)
    report(step=step, total=60, loss=2 / step)
    time.sleep(0.1)"""
HUNG = """%%torchrun -n 2 --timeout 250 --stall 250 browser_hung.py
import time
import torch.distributed as dist
from course_utils.worker import init
init()
print("here I stand", flush=True)
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


def test_while_a_run_lives_each_rank_has_a_lane(open_cells):
    page = open_cells("lanes", IMPORT, HELLO, TRAINING)
    page.run_cells(0, 1)
    page.start_cell(2)
    lanes = page.tab.locator(".course-run .course-lane")
    page.wait_until(lambda: lanes.filter(has_text="step 20").count() == 4)
    page.screenshot("middle")
    assert [lane.get_attribute("data-rank") for lane in lanes.all()] == ["0", "1", "2", "3"]
    assert {lane.get_attribute("data-state") for lane in lanes.all()} == {"running"}
    for part in ("progress", "curve"):
        assert page.tab.locator(f".course-{part}").is_visible(), part
    assert page.too_wide() == []
    page.wait_until_ended()
    page.screenshot("end")
    assert page.tab.locator(".course-run").count() == 0
    assert "4 ranks · gloo · cpu · ok" in page.cells()[2]["text"]
    assert page.errors == []


def test_the_stop_button_ends_a_hung_run(open_cells, lab):
    page = open_cells("stop", IMPORT, HELLO, HUNG, ANSWER)
    page.run_cells(0, 1)
    before = lab.processes()
    page.start_cell(2)
    lanes = page.tab.locator(".course-run .course-lane")
    page.wait_until(lambda: lanes.filter(has_text="here I stand").count() == 2)
    page.screenshot("middle")
    page.press("interrupt")
    page.wait_until_ended()  # its own deadlines are later
    page.screenshot("end")
    page.wait_until(lambda: lab.processes() == before)
    page.run_cells(3)
    assert page.cells()[3]["text"] == "42\n"


def test_a_run_that_fails_shows_its_verdict(open_cells):
    page = open_cells("verdict", IMPORT, FAILING, ANSWER)
    page.run_cells(0, 1)
    page.screenshot("end")
    failed = page.cells()[1]
    assert "no batch left" in failed["text"]
    page.run_cells(2)
    assert page.cells()[2]["text"] == "42\n"
