"""A notebook as it is seen: open in JupyterLab, in a browser."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils import paths
from tests.browser.lab import Lab

SCREENSHOTS = paths.ROOT / "build" / "screenshots"
WIDTH, HEIGHT = 1280, 860  # a laptop's screen, less the browser's own
PATIENCE = 60  # seconds for what takes one or two on idle cores
LONGEST_PAUSE = 500  # milliseconds between two looks at the page
PANEL = "window.jupyterapp.shell.currentWidget"
CODE = f"{PANEL}.content.widgets.filter(each => each.model.type === 'code')"
LAB_IS_READY = "() => window.jupyterapp?.restored.then(() => true)"
NOTEBOOK_IS_READY = """name => {
    const panel = window.jupyterapp.shell.currentWidget;
    return panel?.context?.path === name && panel.content?.model
        && panel.sessionContext?.session?.kernel?.status === "idle";
}"""
STATE = f"""() => `in front is ${{{PANEL}?.title?.label}}, its kernel is ${{
    {PANEL}?.sessionContext?.session?.kernel?.status}}`"""
CELLS = f"""() => {PANEL}.content.model.toJSON().cells
    .filter(cell => cell.cell_type === "code")
    .map(cell => ({{
        source: [cell.source].flat().join(""),
        number: cell.execution_count,
        tags: cell.metadata.tags ?? [],
        errors: cell.outputs.filter(each => each.output_type === "error").map(each => each.evalue),
        text: cell.outputs.map(each => [
            each.text, each.data?.["text/plain"], each.evalue
        ].flat().join("")).join(""),
    }}))"""
# What is wider than its place, and would scroll sideways; a cell's source may.
TOO_WIDE = """() => [...document.querySelectorAll(
    "html, .jp-WindowedPanel-outer, .jp-OutputArea-output, .jp-MarkdownOutput"
)].filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.outerHTML.slice(0, 300))
"""
# Formulas that MathJax could not read, and pictures that could not be loaded.
NOT_SHOWN = """() => [
    ...document.querySelectorAll(".jp-Notebook mjx-merror"),
    ...[...document.querySelectorAll(".jp-Notebook img")].filter(each => !each.naturalWidth)
].map(each => each.outerHTML.slice(0, 300))
"""
# Text whose contrast with the colour behind it is under 4.5 to 1 (3 to 1 if it is large): WCAG AA.
FAINT = """() => {
    const channel = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const read = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
    const behind = node => {
        for (; node; node = node.parentElement) {
            const colour = read(getComputedStyle(node).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const found = new Set();
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true }))
            continue;
        const style = getComputedStyle(node), size = parseFloat(style.fontSize);
        const ink = node.closest("svg") ? style.fill : style.color;
        const [one, other] = [light(read(ink)), light(behind(node))];
        const ratio = (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
        const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        if (ratio < (large ? 3 : 4.5))
            found.add(`${node.className || node.tagName} ${ratio.toFixed(1)} ${
                ink} on ${behind(node)}: ${walk.currentNode.data.trim().slice(0, 30)}`);
    }
    return [...found];
}"""
ALL_CELLS_ARE_DRAWN = f"() => {PANEL}.content.widgets.every(each => each.node.isConnected)"


class Page:
    """JupyterLab in a tab of the browser, with one notebook open at a time.

    To load JupyterLab anew for each would cost five seconds of a core.

    Args:
        browser: Playwright's.
        lab: which JupyterLab.

    Attributes:
        tab: Playwright's page.
        name: the open notebook's, without suffix.
        errors: what the console has shown as an error, and what scripts have raised, since the
            last notebook was closed.
    """

    def __init__(self, browser: Any, lab: Lab):
        self.name = "lab"
        self.errors: list[str] = []
        self.tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._note)
        self.tab.goto(f"{lab.url}lab?reset&token={lab.token}")
        self.wait_until(lambda: self.tab.evaluate(LAB_IS_READY))
        if self.tab.evaluate("() => !window.jupyterapp.shell.leftCollapsed"):
            self.command("application:toggle-left-area")

    def open(self, name: str) -> None:
        """Open a notebook by its file's name, alone; its kernel is ready then."""
        self.name = Path(name).stem
        self.command("docmanager:open", path=name)
        self.wait_until(lambda: self.tab.evaluate(NOTEBOOK_IS_READY, name))
        self.command("application:close-other-tabs")  # the launcher, which comes where none is open

    def close(self) -> None:
        """Close the notebook; its kernel goes on."""
        self.command("docmanager:save")  # or it would ask
        self.command("application:close")
        self.errors.clear()

    def command(self, name: str, **options: Any) -> None:
        """Carry out a command of JupyterLab; returns when it is done."""
        script = """async ([name, options]) => {
            await window.jupyterapp.commands.execute(name, options)
        }"""
        self.tab.evaluate(script, [name, options])

    def cells(self) -> list[dict[str, Any]]:
        """The code cells: `source`, `number`, `tags`, `errors` and the `text` of the outputs."""
        return self.tab.evaluate(CELLS)

    def run_cells(self, *numbers: int) -> None:
        """Run cells one after another, each to its end."""
        for number in numbers:
            self.start_cell(number)
            self.wait_until_ended()

    def start_cell(self, cell: int) -> None:
        """Start cell number `cell` from 0."""
        self.tab.evaluate(f"cell => {{ {PANEL}.content.activeCellIndex = cell }}", cell)
        self._start("notebook:run-cell")

    def run_all(self) -> None:
        """Start all cells."""
        self._start("notebook:run-all-cells")

    def restart(self) -> None:
        """Restart the kernel, as if the reader had confirmed it."""
        self.tab.evaluate(f"() => {PANEL}.sessionContext.restartKernel()")
        self.wait_until(lambda: self.tab.evaluate(NOTEBOOK_IS_READY, f"{self.name}.ipynb"))

    def has_ended(self) -> bool:
        """Whether what was started last has ended."""
        return self.tab.evaluate("() => window.hasEnded")

    def wait_until_ended(self, seconds: float = PATIENCE) -> None:
        """Wait for the end of what was started last."""
        self.wait_until(self.has_ended, seconds)

    def wait_until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Wait until a condition holds.

        Raises:
            TimeoutError: it does not after `seconds`; a screenshot shows what did happen.
        """
        start = time.monotonic()
        while not condition():
            waited = time.monotonic() - start
            if waited > seconds:
                seen = f"see {self.screenshot('stuck')}; {self.tab.evaluate(STATE)}"
                raise TimeoutError(f"not after {seconds} s, {seen}")
            # Ever more rarely: each look takes processor time from what it waits for.
            self.tab.wait_for_timeout(min(50 + 100 * waited, LONGEST_PAUSE))

    def press(self, button: str) -> None:
        """Press a button of the notebook's toolbar."""
        self.tab.locator(f'.jp-NotebookPanel-toolbar [data-jp-item-name="{button}"]').click()

    def numbers(self) -> list[int | None]:
        """The number of each code cell; None for one that has not run, or runs now."""
        return self.tab.evaluate(f"() => {CODE}.map(each => each.model.executionCount)")

    def show_cell(self, cell: int) -> None:
        """Scroll until code cell number `cell` from 0 is in the middle.

        JupyterLab draws the cells above it only now, and they push it out of sight again.
        """
        is_in_the_middle = f"""async number => {{
            const notebook = {PANEL}.content, cell = {CODE}[number];
            await notebook.scrollToItem(notebook.widgets.indexOf(cell), "center");
            const {{ top, bottom }} = cell.node.getBoundingClientRect();
            return cell.node.isConnected && top < innerHeight / 2 && bottom > innerHeight / 2;
        }}"""
        self.wait_until(lambda: self.tab.evaluate(is_in_the_middle, cell))
        self.tab.wait_for_timeout(500)  # until it is drawn
        self.wait_until(lambda: self.tab.evaluate(is_in_the_middle, cell))

    def show_lanes(self) -> bool:
        """Scroll to the lanes of a run that lives; whether there is one."""
        script = """() => {
            const run = document.querySelector(".course-run");
            run?.scrollIntoView({ block: "center" });
            return run !== null;
        }"""
        return self.tab.evaluate(script)

    def shown_badly(self) -> list[str]:
        """What does not fit the page's width or could not be drawn, in the whole notebook."""
        # JupyterLab draws the cells that are out of sight one by one, when it has nothing to do.
        self.wait_until(lambda: self.tab.evaluate(ALL_CELLS_ARE_DRAWN), 4 * PATIENCE)
        return self.too_wide() + self.tab.evaluate(NOT_SHOWN)

    def too_wide(self) -> list[str]:
        """What does not fit the page's width."""
        return self.tab.evaluate(TOO_WIDE)

    def screenshot(self, when: str) -> Path:
        """Keep a picture of what is seen now."""
        path = SCREENSHOTS / f"{self.name}_{when}.png"
        self.tab.screenshot(path=path)
        return path

    def _start(self, command: str) -> None:
        script = """name => {
            window.hasEnded = false;
            window.jupyterapp.commands.execute(name).finally(() => { window.hasEnded = true });
        }"""
        self.tab.evaluate(script, command)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)
