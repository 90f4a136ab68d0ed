"""Cards where JupyterLab is not: as VS Code shows them, in its themes and without scripts.

An emulation: VS Code's variables and its rules for tables, around what a kernel sends. Some pages,
such as GitHub's, take the style out of an output as well.
"""

import re
from collections import deque
from types import SimpleNamespace

import pytest

from nbtorchrun.display import lanes
from nbtorchrun.display import page as display
from tests.browser.page import FAINT, SCREENSHOTS
from tests.launch.page import Page

SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT_OFF = """each => [Math.max(0, each.scrollWidth - each.clientWidth),
    Math.max(0, each.scrollHeight - each.clientHeight)]"""
FILLED = "each => getComputedStyle(each).fill"
THEMES = {"dark": ("#1f1f1f", "#cccccc", "#9d9d9d"), "light": ("#ffffff", "#3b3b3b", "#3b3b3b")}
PAGE = """<!doctype html><meta charset="utf-8"><style>
    :root {{ --vscode-editor-background: {0}; --vscode-foreground: {1};
        --vscode-descriptionForeground: {2}; --vscode-font-family: sans-serif;
        --vscode-editor-font-family: monospace; }}
    body {{ background: var(--vscode-editor-background); color: var(--vscode-foreground);
        font: 13px var(--vscode-font-family); padding: 0 40px; }}
    table, tr, th {{ text-align: right; }}
    th, td {{ padding: 4px 8px; }}
    tr:nth-child(even) {{ background: #82828214; }}
</style><body class="vscode-{theme}">{outputs}</body>"""
TRAINS = """%%torchrun -n 2 other_trains.py
import time
from nbtorchrun.worker import init, report
init()
for step in range(1, 9):
    print("step", step, flush=True)
    report(step=step, total=8, loss=2 / step)
    time.sleep(0.2)"""
FAILS = """%%torchrun -n 3 other_fails.py
import torch.distributed as dist
from nbtorchrun.worker import init
init()
if dist.get_rank() == 1:
    raise ValueError("no batch left")
dist.barrier()"""
CELLS = [
    "from course_utils import predict, proofs",
    TRAINS,
    FAILS,
    'check("00.1")',
    "%%worker exercise_00_1.py\ndef global_rank(node, local, ranks):\n    return node + local",
    'check("00.1")\ncheck("00.1")',
    "%solution 00.1",
    'predict("a").compare("b")\npredict("b").compare("b")',
    'proofs.record("all ranks hold the same bits", "4 ranks", 0, 0)\nproofs.table()',
    "check.progress()",
]
KINDS = {"✓", "raised", "to do", "not yet", "≠", "claims", "exercises"}


@pytest.fixture(autouse=True)
def no_rank_is_left():
    """Nothing here needs JupyterLab; the kernel's own ranks end with it."""


@pytest.fixture(scope="module")
def outputs():
    """The HTML that a kernel sends to an open page, one piece after another, all folds open."""
    kernel = Page()
    try:
        sent = [
            message["content"].get("data", {}) for cell in CELLS for message in kernel.run(cell)
        ]
    finally:
        kernel.close()
    return "".join(data.get("text/html", "") for data in sent).replace("<details", "<details open")


def test_each_kind_of_card_is_among_the_outputs_and_none_needs_a_script(outputs):
    assert set(re.findall('data-kind="(.*?)"', outputs)) >= KINDS
    assert "Solution of 00.1" in outputs
    assert 'class="course-lane"' in outputs
    assert not re.search(r"<script| on\w+=", outputs)


def test_four_lanes_have_room_for_what_each_rank_waits_in(browser):
    waits = "waits in reduce_scatter_tensor #123 · 12 s"
    four = [
        SimpleNamespace(
            rank=SimpleNamespace(number=number), state="waiting", words=waits, report={}, losses=[]
        )
        for number in range(4)
    ]
    for lane in four:
        lane.lines = deque(["step 3"], maxlen=lanes.lines_for(4))
    tab = browser.new_page(viewport={"width": 960, "height": 400})
    drawn = display.bundle(lanes.draw(four, 12.0), "")["text/html"]
    tab.set_content(PAGE.format(*THEMES["light"], theme="light", outputs=drawn))
    words = tab.locator(".course-lane header span")
    assert words.count() == 4
    for each in words.all():
        assert waits in each.inner_text()
        assert each.evaluate(CUT_OFF) == [0, 0]
    tops = {each.bounding_box()["y"] for each in tab.locator(".course-lane").all()}
    assert len(tops) == 1  # side by side
    tab.screenshot(path=SCREENSHOTS / "four_lanes.png")
    tab.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("styled", [True, False], ids=["styled", "bare"])
def test_cards_can_be_read(browser, outputs, theme, styled):
    shown = outputs if styled else re.sub("<style>.*?</style>", "", outputs, flags=re.DOTALL)
    context = browser.new_context(
        viewport={"width": 1100, "height": 860}, java_script_enabled=False
    )
    tab = context.new_page()
    tab.set_content(PAGE.format(*THEMES[theme], theme=theme, outputs=shown))
    name = f"vscode_{theme}_{'styled' if styled else 'bare'}.png"
    tab.screenshot(path=SCREENSHOTS / name, full_page=True)
    assert not tab.evaluate(FAINT)
    assert not styled or tab.evaluate(SCROLLS) <= 0  # lines of code are broken by the style
    curves = tab.locator(".course-curve polyline")
    assert curves.count() > 1
    assert {curve.evaluate(FILLED) for curve in curves.all()} == {"none"}
    context.close()
