"""Search over sections: Sphinx's own search finds only pages, and a notebook is a long page."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.search.en import SearchEnglish

EMPTY = SearchEnglish.stopwords  # "the", "of"
PROSE = 3  # a word in the prose counts as much as this many in code
MOST = 18  # sections that are kept of a word: in their title first, then most often
SHOWN = 75  # characters of a section that stand below its title


def words(text: str) -> list[str]:
    """The words of a text; `all-reduce` and `all_reduce` are one (search.js splits so too)."""
    found = re.findall(r"\w+", re.sub(r"(?<=\w)-(?=\w)", "_", text.lower()))
    return [each for each in found if each not in EMPTY and not each.isdecimal()]


def sections(doctree: nodes.document) -> Iterator[tuple[str, str, str, str]]:
    """Each section of a page without those in it: its anchor, title, prose and code."""
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title)
        prose, code = [], []
        for child in section.children:
            if child is not title and not isinstance(child, nodes.section):
                _read(child, prose, code)
        first = section.parent is doctree
        anchor = "" if first else section["ids"][0]
        yield anchor, title.astext(), " ".join(prose), " ".join(code)


def _read(node: nodes.Node, prose: list[str], code: list[str]) -> None:
    """Sort a node's text into prose and code; the outputs of cells are neither."""
    if isinstance(node, nodes.literal_block):
        code.append(node.astext())
    elif isinstance(node, nodes.TextElement):
        prose.append(node.astext())
    elif isinstance(node, nodes.Element) and "cell_output" not in node.get("classes", ()):
        for child in node.children:
            _read(child, prose, code)


def index(app: Any) -> dict[str, Any]:
    """All sections of the site, and where each word stands; search.js explains the form."""
    pages, rows, places = [], [], defaultdict(list)
    for name in sorted(app.env.found_docs):
        pages.append([app.builder.get_target_uri(name), app.env.titles[name].astext()])
        for anchor, title, prose, code in sections(app.env.get_doctree(name)):
            titled, counts = set(words(title)), Counter(words(f"{title} {prose}"))
            for word in counts:
                counts[word] *= PROSE
            for word in set(words(code)):  # once: code repeats its names
                counts[word] += 1
            for word, count in counts.items():
                places[word].append((word in titled, count, len(rows)))
            said = " ".join(prose.split())
            shown = said if len(said) <= SHOWN else said[:SHOWN].rpartition(" ")[0] + " ..."
            rows.append([len(pages) - 1, anchor, title, shown])
    kept = {word: sorted(found, reverse=True)[:MOST] for word, found in sorted(places.items())}
    listed = {
        word: [n for _, count, row in found for n in (row, count)] for word, found in kept.items()
    }
    return {"pages": pages, "rows": rows, "words": listed}


def write(app: Any, error: Exception | None) -> None:
    """Write the index beside the other scripts."""
    if error is None and app.builder.name == "html":
        text = json.dumps(index(app), ensure_ascii=False, separators=(",", ":"))
        path = Path(app.outdir, "_static", "sections.js")
        path.write_text(f"const SECTIONS = {text};\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, in place of its own search."""
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
    app.connect("html-collect-pages", lambda app: [("search", {}, "search.html")])
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
