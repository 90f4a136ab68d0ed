"""Cards where JupyterLab is not: as VS Code shows them, in its themes and without scripts.

An emulation: VS Code's variables and its rules for tables, around what a kernel sends. Some pages,
such as GitHub's, take the style out of an output as well.
"""

import re

import pytest

from tests.browser.page import FAINT, SCREENSHOTS
from tests.launch.page import Page

SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
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
from course_utils.worker import init, report
init()
for step in range(1, 9):
    print("step", step, flush=True)
    report(step=step, total=8, loss=2 / step)
    time.sleep(0.2)"""
FAILS = """%%torchrun -n 3 other_fails.py
import torch.distributed as dist
from course_utils.worker import init
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
