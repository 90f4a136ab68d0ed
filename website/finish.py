"""What is left to do when Sphinx has written the pages: weight, and translated pages alone."""

import posixpath
import re
import shutil
from pathlib import Path

LOCALE = Path(__file__).resolve().parent / "locale"
NOT_NEEDED = (
    "_sources",
    "jupyter_execute",
    "_static/scripts/fontawesome.js*",
    "_static/vendor",
    "_static/*macros.html",
    "_static/**/*.map",
    "_static/**/*.LICENSE.txt",
)
ICON = re.compile(r"\.fa-[^{}]*\{--fa:[^{}]*\}")  # of the theme's font of icons
LINK = re.compile(r'(?<= )(href|src|action|data-content_root)="([^"#?:]+)([^":]*)"')


def tidy(folder: Path) -> None:
    """Remove what no page of a site uses."""
    for pattern in NOT_NEEDED:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    style = folder / "_static" / "styles" / "pydata-sphinx-theme.css"
    style.write_text(ICON.sub("", style.read_text(encoding="utf-8")), encoding="utf-8")


def translated(language: str) -> list[str]:
    """The pages that have a translation, such as `index` and `docs/symbols`."""
    folder = LOCALE / language / "LC_MESSAGES"
    return sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.po")
    )


def take_translated(built: Path, site: Path, language: str) -> None:
    """Put the translated pages into their folder in the site; their links lead to it.

    The other pages would be twins of the English ones.

    Args:
        built: where Sphinx has written the pages in that language.
        site: the site, with all pages in English.
    """
    for page in translated(language):
        text = (built / f"{page}.html").read_text(encoding="utf-8")
        path = site / language / f"{page}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_moved(text, page, built, site, language), encoding="utf-8")


def _moved(text: str, page: str, built: Path, site: Path, language: str) -> str:
    """A page for its language's folder: what is not there is linked where the English pages are.

    What only the translation has, such as the words of its scripts, comes along.
    """
    here, translations = posixpath.dirname(page), translated(language)

    def link(found: re.Match[str]) -> str:
        name, to, rest = found.groups()
        target = posixpath.normpath(posixpath.join(here, to))
        if target.startswith("..") or target.removesuffix(".html") in translations:
            return found[0]
        if (built / target).is_file() and not (site / target).exists():
            own = site / language / target
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built / target, own)
            return found[0]
        moved = posixpath.relpath(target, posixpath.join(language, here))
        return f'{name}="{moved}{"/" * to.endswith("/")}{rest}"'

    return LINK.sub(link, text)
