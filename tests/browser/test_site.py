"""The web site, as it is built and as it is seen in a browser."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from urllib.parse import unquote

import nbformat
import pytest

from course_utils import paths
from tests.browser.page import FAINT, SCREENSHOTS

pytestmark = [
    pytest.mark.skipif(
        not find_spec("sphinx_book_theme"), reason="not installed: requirements-site.txt"
    ),
    pytest.mark.timeout(240),
]
NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
PAGES = ["index.html", "glossary.html", "docs/symbols.html"]
PAGES += [f"notebooks/{path.stem}.html" for path in NOTEBOOKS]
DOCUMENTS = [
    "nbtorchrun/index.html",
    "nbtorchrun/api.html",
    "docs/instructors.html",
    "docs/beyond-one-box.html",
    "docs/gpu.html",
]
# Wider than the window: what may scroll in its own place is cut off there, and not counted.
SCROLLS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUT_OF_SHAPE = """() => [...document.querySelectorAll("article img")].filter(each => {
    const { width, height } = each.getBoundingClientRect();
    return width && Math.abs(each.naturalWidth / each.naturalHeight * height / width - 1) > .02;
}).map(each => each.outerHTML.slice(0, 200))"""
NARROWEST = """() => Math.min(9999, ...[
    ...document.querySelectorAll(":is(.cell_output, .home-card) img")
].map(each => each.getBoundingClientRect().width))"""
MOVED = """() => [...document.querySelectorAll(".cell_input pre, .home-card pre")].filter(
    each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 80))"""
# Bytes of a page and of all it loads, but for pictures.
WEIGHT = """() => performance.getEntries().filter(
    each => ["navigation", "resource"].includes(each.entryType) && !/[.](png|svg)$/.test(each.name)
).reduce((sum, each) => sum + each.decodedBodySize, 0)"""
HEAVIEST = 1_000_000
UNDESCRIBED = """() => [...document.querySelectorAll("article img")].filter(
    each => !each.alt.trim() || !each.naturalWidth).map(each => each.outerHTML.slice(0, 200))"""

# Words of tables that are broken within. Long names in code may be.
BROKEN = """() => [...document.querySelectorAll("article :is(td, th)")].flatMap(cell => {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode())
        for (const word of walk.currentNode.data.matchAll(/\\b[a-z]{2,14}\\b/gi)) {
            const range = document.createRange();
            range.setStart(walk.currentNode, word.index);
            range.setEnd(walk.currentNode, word.index + word[0].length);
            const tops = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
            if (tops.size > 1) found.push(word[0]);
        }
    return found;
})"""


@pytest.fixture(autouse=True)
def no_rank_is_left():
    """Nothing here starts a rank, or needs JupyterLab."""


def build(*options: str) -> subprocess.CompletedProcess:
    """Call `./run.sh site`, as its last step does."""
    command = [sys.executable, "-m", "website", *options]
    return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site in all languages; every warning of the build is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = build("--output", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served, on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def visit(browser, address):
    """Open pages at a width, in a theme; what they ask for elsewhere and complain about fails."""
    wrong, contexts = [], []

    def open_(width: int, theme: str):
        context = browser.new_context(
            viewport={"width": width, "height": 860}, color_scheme=theme, reduced_motion="reduce"
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda line: line.type == "error" and wrong.append(line.text))
        tab.on(
            "request",
            lambda asked: asked.url.startswith((address, "data:")) or wrong.append(asked.url),
        )
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert not wrong


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
def test_every_page_fits_and_shows_its_pictures_and_formulas(visit, address, width, theme):
    tab = visit(width, theme)
    for page in [*DOCUMENTS, *PAGES]:
        tab.goto(address + page)
        assert tab.evaluate(SCROLLS) <= 0, page
        assert not tab.evaluate(UNDESCRIBED), page
        assert not tab.evaluate(OUT_OF_SHAPE), page
        assert tab.evaluate(NARROWEST) >= (640 if width < 640 else 600), page
        assert width > 640 or not tab.evaluate(MOVED), page
        assert 100_000 < tab.evaluate(WEIGHT) < HEAVIEST, page
        name = page.removesuffix(".html").replace("/", "_")
        if page in (PAGES[0], PAGES[-1]):
            tab.screenshot(path=SCREENSHOTS / f"site_{name}_{width}_{theme}.png")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, address, theme):
    tab = visit(1280, theme)
    for page in (*DOCUMENTS, *PAGES[:2], PAGES[3], PAGES[-1], "zh_CN/index.html"):
        tab.goto(address + page)
        assert not tab.evaluate(FAINT), page


@pytest.mark.parametrize("width", [390, 1280])
def test_words_in_tables_stay_whole(visit, address, width):
    tab = visit(width, "light")
    for page in [*DOCUMENTS, PAGES[0]]:
        tab.goto(address + page)
        assert not tab.evaluate(BROKEN), page


def test_the_home_page_leads_to_00_and_each_notebook_to_the_next(visit, address):
    tab = visit(1280, "light")
    tab.goto(address)
    first = tab.get_by_role("link", name="Start with notebook 00")
    assert first.bounding_box()["y"] < 860  # in sight without scrolling
    first.click()
    for path in NOTEBOOKS[1:]:
        tab.locator("a.right-next").click()
        assert tab.url.endswith(f"/{path.stem}.html")


def test_a_link_leads_to_its_section_as_in_jupyterlab(visit, address):
    tab = visit(1280, "light")
    tab.goto(f"{address}{next(page for page in PAGES if '/04' in page)}")
    tab.locator("article a[href='#around-a-ring']").first.click()
    heading = tab.get_by_role("heading", name="Around a ring")
    assert -5 < heading.bounding_box()["y"] < 400


def test_a_folded_cell_is_closed_until_it_is_clicked(visit, address):
    tab = visit(1280, "light")
    tab.goto(address + PAGES[3])
    folded = tab.locator("details.hide").first
    assert "Show" in folded.locator("summary").inner_text()
    code = folded.locator("pre").first
    assert not code.is_visible()
    folded.locator("summary").click()
    assert code.is_visible()


@pytest.mark.parametrize(
    ("query", "notebook"),
    [("all_reduce hangs", "13"), ("checkpoint killed", "14"), ("ring all-reduce", "04")],
)
def test_search_finds_sections(visit, address, query, notebook):
    tab = visit(1280, "light")
    tab.goto(address)
    tab.locator("form.bd-search input").first.fill(query)
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html?q=*")
    first = tab.locator("#search-results li a").first
    assert first.get_attribute("href").startswith(f"notebooks/{notebook}_")
    assert tab.evaluate(WEIGHT) < HEAVIEST
    section = tab.locator("#search-results a[href*='#']").first
    title = section.inner_text()
    section.click()
    heading = tab.get_by_role("heading", name=title, exact=False).first
    tab.wait_for_timeout(200)
    assert -5 < heading.bounding_box()["y"] < 400


def test_search_on_a_phone_and_what_is_not_there(visit, address):
    tab = visit(390, "light")
    tab.goto(address + PAGES[3])
    tab.get_by_role("link", name="Search").click()
    tab.locator("article form.bd-search input").fill("the zzyzx")
    assert "0 sections" in tab.locator("#search-summary").inner_text()
    tab.locator("article form.bd-search input").fill("deadlo")  # not typed to its end
    assert tab.locator("#search-results a[href*='notebooks/00_']").count() > 0


@functools.cache
def ids(page):
    """What a link can lead to on a page."""
    return set(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8")))


def test_the_site_holds_its_pages_and_nothing_else(site):
    assert not [name for name in ("_sources", "jupyter_execute") if (site / name).exists()]
    translated = [
        path.relative_to(site / "zh_CN").as_posix() for path in site.glob("zh_CN/**/*.html")
    ]
    assert translated == ["index.html"]
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        links = re.findall(r'(?:href|src)="([^"#?:]*)(?:\?[^"#]*)?(?:#([^"]*))?"', text)
        for link, anchor in set(links):
            target = (path.parent / link).resolve() if link else path
            assert target.exists(), f"{path.name} leads to {link}"
            if anchor and target.suffix == ".html":
                assert unquote(anchor) in ids(target), f"{path.name} leads to {link}#{anchor}"


def test_what_is_closed_in_jupyterlab_is_closed_on_the_site(site):
    for path in NOTEBOOKS:
        page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        words = re.sub(r"<[^>]*>", "", page)
        assert "guess.compare(" in words
        assert not re.search(r"guess\.compare\((&quot;|&#34;|')", words), path.stem


def test_the_library_has_its_pages(visit, address):
    tab = visit(1280, "light")
    tab.goto(address + "nbtorchrun/index.html")
    tab.locator("article").get_by_role("link", name="What it offers").click()
    for name in ("launch", "Run", "init", "report"):
        assert tab.get_by_role("heading", name=name, exact=False).first.is_visible()


def test_all_folded_cells_are_folded_and_all_formulas_are_drawn(site):
    for path in NOTEBOOKS:
        page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        book = nbformat.read(path, 4)
        hidden = [c for c in book.cells if c.metadata.get("jupyter", {}).get("source_hidden")]
        assert page.count('<details class="admonition hide') >= len(hidden), path.stem
        texts = "\n".join(c.source for c in book.cells if c.cell_type == "markdown")
        texts = re.sub(r"`[^`]*`", "", texts)  # a dollar in code is a dollar
        assert page.count("<math") >= len(re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", texts, re.S))


def test_a_page_is_there_in_chinese_and_leads_back(visit, address):
    tab = visit(1280, "light")
    tab.goto(address)
    tab.get_by_role("link", name="中文").click()
    assert tab.evaluate("document.documentElement.lang") == "zh-CN"
    assert "分布式训练" in tab.locator("article h1").inner_text()
    tab.get_by_role("link", name="English").click()
    assert tab.url == f"{address}index.html"


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    done = build("--output", str(tmp_path))
    assert (done.returncode, (tmp_path / "thesis.txt").read_text()) == (2, "mine")
    assert "something other than a site" in done.stderr
