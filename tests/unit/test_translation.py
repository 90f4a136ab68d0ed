"""The web site's translations and outputs: what a page cannot show is named, not lost."""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from course_utils import paths
from nbtorchrun.errors import InputError
from tests.needs import needs
from website import pages

FORMULA = r"V = 2 \frac{N-1}{N} S"
LINKS = "The [paper](https://example.org/paper) has the proof, and [a page](good.md) more."
PAPER, PAGE = "[论文](https://example.org/paper)", "[这里](good.md)"
# Each page in English, with its translation: (English, translated), and "fuzzy" if it is.
GOOD = f"# Good\n\n{LINKS}\n\n$$\n{FORMULA}\n$$\n\n> $$\n> y = x\n> $$\n\n- An item with $x^2$\n"
GOOD_ENTRIES = (
    ("Good", "好"),
    (LINKS, f"更多在{PAGE} 证明见{PAPER}"),  # in another order
    (FORMULA, "\\text{流量} = 2\n\n\\frac{N-1}{N} S"),
    ("y = x", r"\text{发送} = x"),
    ("An item with $x^2$", ""),  # never translated: not older
)
OLDER = "# Older\n\nNew words.\n\nNewer words.\n"
OLDER_ENTRIES = (
    ("Older", "旧"),
    ("New words.", "旧词", "fuzzy"),
    ("Once here.", "以前"),
    ("Newer words.", ""),
)
ONE_OLDER_ENTRIES = (("Older", "旧"), ("New words.", "旧词", "fuzzy"))
WRONG = (
    (f"更多在{PAGE}", "lacks the link to https://example.org/paper"),
    (f"证明见{PAPER}", "lacks the link to good.md"),
    (
        f"[论文](https://example.org/wrong) {PAGE}",
        "leads to https://example.org/wrong, not to https://example.org/paper",
    ),
    (
        f"{PAPER} {PAGE} [三](https://example.org/new)",
        "leads to https://example.org/new, the English does not",
    ),
    (f"1. {PAPER} {PAGE}", "is not one paragraph"),
    (f"{PAPER}\n\n{PAGE}", "is not one paragraph"),
    (rf"{PAPER} {PAGE} $\norm$", r"the formula \norm cannot be drawn"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages with their translations, built with the site's settings: status, text, HTML by page."""
    folder = tmp_path_factory.mktemp("translated")
    written = {"good": (GOOD, GOOD_ENTRIES), "older": (OLDER, OLDER_ENTRIES)}
    written["one"] = OLDER, ONE_OLDER_ENTRIES
    written["formula"] = GOOD, ((FORMULA, r"2 \frak{"),)
    for number, (translated, _) in enumerate(WRONG):
        written[f"wrong{number}"] = f"# Wrong\n\n{LINKS}\n", ((LINKS, translated),)
    locale = folder / "locale" / "zh_CN" / "LC_MESSAGES"
    locale.mkdir(parents=True)
    source = folder / "source"
    source.mkdir()
    for name, (text, entries) in written.items():
        (source / f"{name}.md").write_text(text)
        entries = (("", "Content-Type: text/plain; charset=UTF-8\n"), *entries)
        (locale / f"{name}.po").write_text("\n".join(map(as_po, entries)), encoding="utf-8")
    (source / "index.md").write_text("# All\n\n```{toctree}\n:glob:\n\n*\n```\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"),
            *("-c", str(paths.ROOT / "website"), "-D", "language=zh_CN"),
            *("-D", f"locale_dirs={folder / 'locale'}", str(source), str(folder / "out")),
        ],
        cwd=paths.ROOT,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (folder / "out" / "index.html").exists(), done.stdout + done.stderr
    html = {name: (folder / "out" / f"{name}.html").read_text("utf-8") for name in written}
    return done.returncode, done.stdout + done.stderr, html


def as_po(entry: tuple[str, ...]) -> str:
    """An entry of a .po file."""
    english, translated = (
        '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'
        for text in entry[:2]
    )
    marks = "".join(f"#, {mark}\n" for mark in entry[2:])
    return f"{marks}msgid {english}\nmsgstr {translated}\n"


needs_sphinx = needs(modules=["sphinx_book_theme"])


@needs_sphinx
def test_a_translated_block_formula_is_drawn_whole(site):
    _, _, html = site
    assert "<mtext>流量</mtext>" in html["good"]
    assert html["good"].count("<mfrac>") == 1  # below a blank line of the translation
    assert "<mtext>发送</mtext>" in html["good"]  # in a quotation
    assert "::" not in re.sub("<[^>]*>", "", html["good"].partition("<article")[2])


@needs_sphinx
@pytest.mark.parametrize(("number", "expected"), [*enumerate(expected for _, expected in WRONG)])
def test_an_entry_that_cannot_be_shown_is_named(site, number, expected):
    status, said, _ = site
    assert status != 0
    (line,) = [line for line in said.splitlines() if f"wrong{number}.po:" in line]
    assert expected in line
    assert "zh_CN, entry “The [paper]" in line


@needs_sphinx
def test_a_translated_formula_that_cannot_be_drawn_is_named(site):
    _, said, _ = site
    (line,) = [line for line in said.splitlines() if "formula.po:" in line]
    assert "zh_CN, entry “V = 2" in line
    assert r"the formula 2 \frak{ cannot be drawn" in line


@needs_sphinx
def test_nothing_is_said_of_a_page_whose_translation_is_right(site):
    _, said, html = site
    assert "good.po" not in said
    assert "zh_CN, good" not in said
    assert html["good"].index("这里") < html["good"].index("论文")
    assert "older than the English" not in html["good"]


@needs_sphinx
@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("older", "2 of 3 paragraphs are older than the English"),
        ("one", "1 of 2 paragraphs is older than the English"),
    ],
)
def test_the_page_and_the_build_say_how_much_is_older_than_the_english(site, page, expected):
    _, said, html = site
    assert f"zh_CN, {page}: {expected}." in said.splitlines()
    assert expected in html[page]
    assert "New words" in html[page]  # in English


def notebook(*kinds: str) -> dict:
    """A notebook with one output, in several types."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 99 · A notebook")])
    output = nbformat.v4.new_output("display_data", {kind: "shown" for kind in kinds})
    book.cells.append(nbformat.v4.new_code_cell("draw()", outputs=[output], id="drawn"))
    return book


@pytest.mark.parametrize("kind", ["application/vnd.plotly.v1+json", "video/mp4"])
def test_an_output_that_the_site_cannot_show_is_named(tmp_path, kind):
    path = tmp_path / "99_drawn.ipynb"
    nbformat.write(notebook(kind), path)
    with pytest.raises(
        InputError, match=r"99_drawn.ipynb: cell 2 \(id drawn\) shows " + re.escape(kind)
    ):
        pages.prepared(path)


def test_of_several_types_the_site_takes_one_that_it_can_show(tmp_path):
    path = tmp_path / "99_drawn.ipynb"
    nbformat.write(notebook("application/vnd.plotly.v1+json", "text/plain"), path)
    (output,) = pages.prepared(path)["cells"][1]["outputs"]
    assert list(output["data"]) == ["text/plain"]
