"""Translations: an entry that the page cannot show as it is written is an error that names it."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Message
from babel.messages.pofile import PoFileError, read_po
from docutils import nodes
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_nb import sphinx_
from myst_parser.parsers.mdit import create_md_parser
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.i18n import docname_to_domain
from sphinx.util.nodes import LITERAL_TYPE_NODES, extract_messages

from website.formulas import why_unreadable

INDENTED = "::\n\n"  # how Sphinx hands a translated formula to the parser, with three blanks a line
SHOWN = 60  # characters of an entry in a message
LOGGER = logging.getLogger(__name__)


class Parser(sphinx_.Parser):
    """Reads translated formulas and blocks of HTML as they are.

    Sphinx writes them as a literal block of reStructuredText, which Markdown does not know.
    """

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse a page, or a translated entry."""
        translated = document.current_source.endswith("<translated>")
        if not (translated and inputstring.startswith(INDENTED)):
            super().parse(inputstring, document)
            return
        text = re.sub(r"(?m)^ {3}", "", inputstring.removeprefix(INDENTED))
        document += nodes.literal_block(text, text)


class Entries(SphinxTransform):
    """Compares the entries of a page's .po file with its English, before Sphinx puts them in."""

    default_priority = 15

    def apply(self, **arguments: Any) -> None:
        """Report entries that are wrong; say on the page how many are older than the English."""
        if self.app.builder.name == "gettext":
            return
        for path in self.catalogues():
            try:
                with path.open("rb") as file:
                    catalogue = read_po(file, self.config.language)
            except (PoFileError, UnicodeDecodeError):
                continue  # Sphinx itself has reported it
            english = list(extract_messages(self.document))
            for node, text in english:
                entry = catalogue.get(text)
                if entry and entry.string not in ("", text) and not entry.fuzzy:
                    for wrong in self.mistakes(node, entry):
                        self.report(path, entry, wrong)
            filled = [entry for entry in catalogue if entry.id and entry.string]
            on_page = {text for _, text in english}
            older = sum(entry.fuzzy or entry.id not in on_page for entry in filled)
            if older:
                self.say(older, len(filled))

    def catalogues(self) -> Iterator[Path]:
        """The .po files of this page in the language that is built."""
        name = docname_to_domain(self.env.docname, self.config.gettext_compact)
        for folder in self.config.locale_dirs:
            path = Path(self.app.srcdir, folder, self.config.language, "LC_MESSAGES", f"{name}.po")
            if path.exists():
                yield path

    def mistakes(self, node: nodes.Element, entry: Message) -> Iterator[str]:
        """What the page could not show, or would show without a link."""
        if isinstance(node, nodes.math_block):
            yield from filter(None, [why_unreadable(entry.string)])
        if isinstance(node, (*LITERAL_TYPE_NODES, nodes.image)):
            return
        english, translated = (self.tokens(text) for text in (entry.id, entry.string))
        blocks = [token for token in translated if token.level == 0 and token.nesting >= 0]
        if [block.type for block in blocks] != ["paragraph_open"]:
            yield "its translation is not one paragraph, as the English is: write it as one"
            return
        yield from filter(None, map(why_unreadable, formulas(translated)))
        before, after = Counter(targets(english)), Counter(targets(translated))
        lost, new = sorted((before - after).elements()), sorted((after - before).elements())
        if lost and new:
            yield f"its translation leads to {' and '.join(new)}, not to {' and '.join(lost)}"
        elif lost:
            yield f"its translation lacks the link to {' and '.join(lost)}"
        elif new:
            yield f"its translation leads to {' and '.join(new)}, the English does not"

    def tokens(self, text: str) -> list[Token]:
        """A text as Markdown, with the site's own extensions of it."""
        return create_md_parser(self.env.myst_config, RendererHTML).parse(text)

    def report(self, path: Path, entry: Message, wrong: str) -> None:
        """A warning with the file, the language and the entry: it fails the build."""
        text = " ".join(entry.id.split())
        text = text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
        where = f"{path}:{entry.lineno}"
        LOGGER.warning("%s, entry “%s”: %s.", self.config.language, text, wrong, location=where)

    def say(self, older: int, entries: int) -> None:
        """Say it below the page's title, and to who builds the site."""
        are = "is" if older == 1 else "are"
        text = f"{older} of {entries} paragraphs {are} older than the English"
        shown = f"{text}, which is shown in {'its' if older == 1 else 'their'} place."
        title = next(self.document.findall(nodes.title))
        place = title.parent.index(title) + 1
        title.parent.insert(place, nodes.note("", nodes.paragraph("", shown)))
        print(f"{self.config.language}, {self.env.docname}: {text}.", flush=True)


def formulas(tokens: list[Token]) -> Iterator[str]:
    """The formulas of a text."""
    for token in tokens:
        if token.type.startswith("math"):
            yield token.content
        yield from formulas(token.children or [])


def targets(tokens: list[Token]) -> Iterator[str]:
    """Where the links and pictures of a text lead, and what it names with a role."""
    for token in tokens:
        match token.type:
            case "link_open":
                yield str(token.attrs["href"])
            case "image":
                yield str(token.attrs["src"])
            case "footnote_ref":
                yield f"[^{token.meta['label']}]"
            case "myst_role":
                yield f"{{{token.meta['name']}}}`{token.content}`"
        yield from targets(token.children or [])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_source_parser(Parser, override=True)
    app.add_transform(Entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
