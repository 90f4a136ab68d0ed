"""The documents: their links lead somewhere, and their lines are as long as the house rules say."""

import re
import tomllib

import pytest

from course_utils import paths

LIMIT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]
DOCUMENTS = sorted(
    [*paths.ROOT.glob("*.md"), *paths.ROOT.glob("[!.]*/README.md"), *paths.ROOT.glob("docs/*.md")]
)
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def prose(text: str) -> str:
    """A document without its blocks of code."""
    return FENCED.sub("", text)


def anchors(text: str) -> set[str]:
    """The headings of a document, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: "/".join(path.parts[-2:]))
def test_every_link_leads_to_a_file_and_to_a_section_of_it(path):
    text = path.read_text(encoding="utf-8")
    for link in filter(None, sum(LINK.findall(prose(text)), ())):
        if re.match(r"\w+:", link):
            continue
        file, _, section = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_relative_to(paths.ROOT), link
        assert target.exists(), link
        if section:
            assert section in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_line_stays_within_the_limit(path):
    # A row of a table, a picture or an address cannot be broken.
    lines = prose(path.read_text(encoding="utf-8")).splitlines()
    long = [line for line in lines if len(line) > LIMIT and not re.match(r"\||!\[|\S+$", line)]
    assert not long
