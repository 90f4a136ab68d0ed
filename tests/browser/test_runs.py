"""Runs that are watched: the lanes of their ranks, the stop button, and what stays of a failure."""

IMPORT = "import course_utils"
HELLO = '%%torchrun -n 2 browser_hello.py\nprint("hello")'
CLOSE = "from nbtorchrun.launcher import client\nclient.close_kept_agent()"
SAID_BELOW = "each => parseFloat(getComputedStyle(each, '::after').height) || 0"
OPACITY = "each => getComputedStyle(each).opacity"
ANSWER = "print(6 * 7)"
TRAINING = """%%torchrun -n 4 --timeout 250 browser_training.py
import time
from pathlib import Path
import torch.distributed as dist
from nbtorchrun.worker import init, report
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
from nbtorchrun.worker import init
init()
if dist.get_rank() == 1:
    time.sleep(600)
dist.barrier()"""
FAILING = """%%torchrun -n 2 browser_failing.py
import torch.distributed as dist
from nbtorchrun.worker import init
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
    card = page.tab.locator('.course-card[data-kind="✓"]').last
    assert card.locator(".course-rank").all_inner_texts() == [f"rank {n}" for n in range(4)]
    assert card.locator(".course-curve polyline").count() == 4
    assert page.too_wide() == []
    assert page.errors == []


def test_a_failed_run_shows_its_verdict_and_the_stop_button_ends_a_hung_one(open_cells, lab):
    page = open_cells("failures", IMPORT, FAILING, HUNG, ANSWER)
    page.run_cells(0, 1)
    page.screenshot("verdict")
    assert "ValueError: no batch left" in page.cells()[1]["text"]
    card = page.tab.locator('.course-card[data-kind="raised"]')
    assert "rank 1" in card.inner_text()
    assert 'raise ValueError("no batch left")' in card.inner_text()
    assert "failed first" in card.locator(".course-row").inner_text()
    assert "ended as a consequence" in card.locator("summary").last.inner_text()
    errors = page.tab.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
    assert not any(error.is_visible() for error in errors.all())  # the card says the same
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
    card = page.tab.locator('.course-card[data-kind="stopped"]')
    assert "rank 1 had not reached barrier #1; rank 0 waits for it" in card.inner_text()
    page.wait_until(lambda: not lab.processes() - before)
    page.run_cells(3)
    assert page.cells()[3]["text"] == "42\n"


def test_the_first_launch_is_announced_while_torch_is_imported(open_cells):
    page = open_cells("first", f"{IMPORT}\n{CLOSE}", HELLO)
    page.run_cells(0)
    page.start_cell(1)
    page.wait_until(page.tab.get_by_text("starting torch, once per notebook").is_visible)
    page.screenshot("starting")
    page.wait_until_ended()
    assert page.tab.locator('.course-card[data-kind="✓"]').is_visible()
    assert page.tab.locator(".course-run").count() == 0


def test_the_page_keeps_its_style_when_its_first_cell_runs_again(open_cells):
    page = open_cells("dressed", IMPORT, ANSWER)
    styles = page.tab.locator(".jp-OutputArea-output style")
    page.run_cells(0, 1)
    page.wait_until(lambda: styles.count() == 1)
    page.run_cells(0, 1, 0)
    page.wait_until(lambda: styles.count() == 1)
    assert "course-" in styles.inner_text()


def test_a_restart_leaves_no_run_that_seems_to_live_and_the_magics_are_there(open_cells, tmp_path):
    page = open_cells("restart", TRAINING.format(seen=tmp_path / "never"), HELLO)
    page.start_cell(0)
    page.wait_until(page.tab.locator('.course-lane[data-state="running"]').first.is_visible)
    run = page.tab.locator(".course-run")
    assert run.evaluate(SAID_BELOW) == 0
    page.restart()
    page.wait_until(lambda: run.evaluate(SAID_BELOW) > 0)
    assert float(run.locator(".course-lanes").evaluate(OPACITY)) < 1
    page.screenshot("dead")
    page.run_cells(1)  # without the import
    assert "2 ranks · ok" in page.cells()[1]["text"]
