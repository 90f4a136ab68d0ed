"""A student's own copies of the notebooks: without outputs, outside git, theirs to change."""

import hashlib
import json
from datetime import date
from itertools import count
from pathlib import Path

from course_utils import paths
from course_utils.notebook import cells, notes

# By the copy's name: `version`, of the course's notebook that was copied or offered last, and
# `offered`, the file it was offered in.
NOTED = ".copies.json"


def update(folder: Path) -> list[str]:
    """Copy each notebook of the course to `folder`; return what the student should know.

    A copy is made where it is missing, and never written again: a newer notebook goes beside it.

    Raises:
        InputError: a notebook is broken, or the folder cannot be written to.
    """
    texts = {path.name: _cleared(path) for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))}
    with notes.changing(NOTED, folder) as noted:
        made = not noted
        said = [
            _update(folder / name, text, noted.setdefault(name, {})) for name, text in texts.items()
        ]
    welcome = [f"Your own copies of the notebooks are in {folder}. No git pull changes them."]
    return welcome * made + [news for news in said if news]


def _update(copy: Path, text: bytes, noted: dict[str, str]) -> str:
    """Make one copy of the course's notebook, `text`, or offer it; return the news, or ''."""
    version, before, now = _digest(text), noted.get("version"), _digest_of(copy)
    offered = copy.with_name(noted["offered"]) if "offered" in noted else None
    if offered and version != before == _digest_of(offered):
        offered.unlink()  # a newer one takes its place
    noted["version"] = version
    if now in (None, version):
        noted.pop("offered", None)
        if now is None:
            paths.replace(copy, text)
        return ""
    if version != before:
        offered = _new_name(copy)
        paths.replace(offered, text)
        noted["offered"] = offered.name
    if not (offered and offered.exists()):
        return ""  # the student has seen it and removed it
    return (
        f"The course has changed {copy.name}. Your copy stays as it is; the new notebook is beside "
        f"it: {offered.name}."
    )


def _cleared(path: Path) -> bytes:
    """A notebook of the course as a file without outputs."""
    book = cells.read(path)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def _new_name(copy: Path) -> Path:
    """A free name beside a copy, such as `03_ddp.new-2026-11-26.ipynb`."""
    dated = f"{copy.stem}.new-{date.today()}"
    names = (dated if number == 1 else f"{dated}-{number}" for number in count(1))
    return next(path for name in names if not (path := copy.with_name(f"{name}.ipynb")).exists())


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _digest_of(path: Path) -> str | None:
    """The digest of a file; None if it is missing."""
    return _digest(path.read_bytes()) if path.exists() else None
