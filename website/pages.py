"""Writes the pages that Sphinx reads: the notebooks, the documents, a home page and a glossary."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_utils import cells, paths
from nbtorchrun.errors import InputError
from tools.first_cell import REPOSITORY
from website import library, pictures
from website import map as course_map
from website.reading import slug

HERE = Path(__file__).resolve().parent
BRANCH = "main"  # of the repository, whose notebooks Colab and Kaggle open
DOCUMENTS = ("symbols", "instructors", "beyond-one-box", "gpu", "claims")
# The types of outputs that MyST-NB can show on a page.
SHOWN = {"text/plain", "text/html", "text/markdown", "text/latex", "application/javascript"}
SHOWN |= {"image/png", "image/jpeg", "image/gif", "image/svg+xml"}
SHOWN |= {"application/vnd.jupyter.widget-view+json"}
LINE = re.compile(r"^\| (?P<words>.+?) \| (?P<chinese>.+?) \| (?P<meaning>.+?) \|$", re.MULTILINE)


def write(folder: Path) -> None:
    """Write all pages into a folder. What did not change keeps its time: Sphinx passes over it."""
    made = {"index.md": home(), "glossary.md": glossary()}
    for path in notebooks():
        made[f"notebooks/{path.name}"] = json.dumps(prepared(path), ensure_ascii=False)
    for name in DOCUMENTS:
        made[f"docs/{name}.md"] = document(name)
    made |= library.pages()
    if folder.exists():
        for path in folder.rglob("*.[mi]*"):
            if str(path.relative_to(folder)) not in made:
                path.unlink()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    shutil.copytree(
        paths.ROOT / "docs" / "templates",
        folder / "docs/templates",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(".ipynb_checkpoints"),  # JupyterLab's
    )
    shutil.copy(course_map.PICTURE, folder)
    for name, (notebook, cell) in pictures.ON_THE_HOME_PAGE.items():
        (folder / f"{name}.png").write_bytes(pictures.saved(notebook, cell))


def document(name: str) -> str:
    """A document; where it leads to the README, the site has its home page."""
    text = (paths.ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    home_text = (HERE / "home.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", home_text, re.MULTILINE)
    slugs = {slug(heading).lower(): slug(heading) for heading in headings}  # GitHub's, and ours

    def home_page(found: re.Match[str]) -> str:
        anchor = slugs.get(found["anchor"] or "")
        return f"](../index.md{f'#{anchor}' if anchor else ''})"

    return re.sub(r"\]\(\.\./README\.md(#(?P<anchor>[^)]*))?\)", home_page, text)


def notebooks() -> list[Path]:
    """The notebooks, in the order of the course."""
    return sorted(paths.NOTEBOOKS.glob("*.ipynb"))


def prepared(path: Path) -> dict[str, Any]:
    """A notebook with what the site needs to know about its cells, and links that run it.

    Folded cells are folded, worker cells are coloured as Python, and pictures have a description.
    """
    book = cells.read(path)
    keep_what_is_shown(path, book)
    first = book["cells"][0]
    heading, _, rest = "".join(first["source"]).partition("\n")
    first["source"] = f"{heading}\n{launch_links(path.name, REPOSITORY)}{rest}"
    book["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "course"}
    for cell in book["cells"]:
        source, metadata = "".join(cell["source"]), cell["metadata"]
        if cell["cell_type"] == "markdown":
            continue
        ours = metadata.setdefault("mystnb", {})
        ours["image"] = pictures.options(cell)
        if metadata.get("jupyter", {}).get("source_hidden"):
            metadata["tags"] = [*metadata.get("tags", ()), "hide-input"]
            named = re.match(r"%%\w+ .*?([\w.]+\.py)", source)
            ours["code_prompt_show"] = f"Show {named[1] if named else 'the code'}"
            ours["code_prompt_hide"] = f"Hide {named[1] if named else 'the code'}"
    return book


def keep_what_is_shown(path: Path, book: dict[str, Any]) -> None:
    """Drop what a page cannot show of each output; an output of which nothing is left is an error.

    Raises:
        InputError: names each such output's cell and type.
    """
    wrong = []
    for number, cell in enumerate(book["cells"], start=1):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if shown := {kind: value for kind, value in data.items() if kind in SHOWN}:
                output["data"] = shown
            elif data:
                wrong.append(f"cell {number} (id {cell.get('id')}) shows {' and '.join(data)}")
    if wrong:
        raise InputError(
            f"the site has no way to show some outputs of notebooks/{path.name}: "
            f"{'; '.join(wrong)}. Let these cells also show plain text or a picture."
        )


def launch_links(name: str, repository: str) -> str:
    """A paragraph that opens a notebook on Colab and Kaggle; '' if GitHub does not have it.

    Args:
        name: the notebook's file.
        repository: the address of the course's git repository.
    """
    at_github = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(\.git)?/?", repository)
    if not at_github:
        return ""
    path = f"{at_github[1]}/blob/{BRANCH}/notebooks/{name}"
    colab = f"https://colab.research.google.com/github/{path}"
    kaggle = f"https://www.kaggle.com/kernels/welcome?src=https://github.com/{path}"
    return f"\nRun it on [Colab]({colab}) or on [Kaggle]({kaggle}).\n\n"


def texts(path: Path) -> Iterator[str]:
    """The text cells of a notebook."""
    return ("".join(c["source"]) for c in cells.read(path)["cells"] if c["cell_type"] == "markdown")


def title(path: Path) -> str:
    """The title of a notebook, such as "00 · Processes and collectives"."""
    return next(texts(path)).partition("\n")[0].removeprefix("# ")


def home() -> str:
    """The home page: its text, a verdict, the list of notebooks, and the order of all pages."""
    lines = [
        f"| [{title(path)}](notebooks/{path.name}) | {course_map.STOPS[path.name[:2]].able} | "
        f"{course_map.minutes(path.name[:2])} |"
        for path in notebooks()
    ]
    text = (HERE / "home.md").read_text(encoding="utf-8")
    filled = {
        "NOTEBOOKS": "\n".join(lines),
        "WAYS": course_map.ways(),
        "VERDICT": pictures.verdict().rstrip(),
        "PAGES": "\n".join(f"notebooks/{path.stem}" for path in notebooks()),
        "LIBRARY": "\n".join(library.PAGES),
        "DOCUMENTS": "\n".join(f"docs/{name}" for name in DOCUMENTS),
    }
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text


def glossary() -> str:
    """The *Words* tables of all notebooks as one, sorted, each row with the notebook it is from."""
    rows = {}
    for path in notebooks():
        table = next((text for text in texts(path) if re.match(r"#+ Words\n", text)), "")
        for row in LINE.finditer(table):
            if row["words"] not in ("English", "---"):
                where = f"[{path.name[:2]}](notebooks/{path.name})"
                rows.setdefault(row["words"].casefold(), []).append((*row.groups(), where))
    body = "\n".join(f"| {' | '.join(row)} |" for key in sorted(rows) for row in rows[key])
    about = "The *Words* tables of all notebooks, in one. The last column leads to the notebook."
    head = "| English | 中文 | in one line | |\n| --- | --- | --- | --- |"
    return f"# Words\n\n{about}\n\n{head}\n{body}\n"
