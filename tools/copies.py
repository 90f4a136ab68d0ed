"""A student's own copies of the notebooks: without outputs, outside git, theirs to change.

JupyterLab serves only the folder of the copies. So the course's documents can be reached from
there too, and the copies' links lead to them.
"""

import hashlib
import json
from datetime import date
from itertools import count
from pathlib import Path

from course_utils import cells, notes, paths
from nbtorchrun import settings

# By the copy's name: `version`, of the course's notebook that was copied or offered last;
# `offered`, the file it was offered in; and `copied`, the version that the copy began as.
NOTED = ".copies.json"
DOCUMENTS = "docs"  # the folder to which notebooks link


def update(folder: Path) -> list[str]:
    """Copy each notebook of the course to `folder`; return what the student should know.

    A copy is made where it is missing, and replaced as long as nobody has changed it. Beside one
    that was changed goes the newer notebook.

    Raises:
        InputError: a notebook is broken, or the folder cannot be written to.
    """
    texts = {path.name: _cleared(path) for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))}
    with notes.changing(NOTED, folder) as noted:
        made = not noted
        _link(folder / DOCUMENTS, paths.ROOT / DOCUMENTS)
        said = [
            _update(folder / name, text, noted.setdefault(name, {})) for name, text in texts.items()
        ]
    welcome = [f"Your own copies of the notebooks are in {folder}. No git pull changes them."]
    return welcome * made + [news for news in said if news]


def _update(copy: Path, text: bytes, noted: dict[str, str]) -> str:
    """Make one copy of the course's notebook, `text`, or offer it; return the news, or ''."""
    version, before, now = _digest(text), noted.get("version"), _digest_of(copy)
    offered = copy.with_name(noted["offered"]) if "offered" in noted else None
    copied = noted.get("copied", None if offered else before)
    if offered and version != before == _digest_of(offered):
        offered.unlink()  # a newer one takes its place
    noted["version"] = version
    if now in (None, copied, version):
        noted.pop("offered", None)
        noted["copied"] = version
        if now == version:
            return ""
        settings.replace(copy, text)
        renewed = f"The course has changed {copy.name}, and you had not: your copy is the new one."
        return renewed if now else ""
    if version != before:
        offered = _new_name(copy)
        settings.replace(offered, text)
        noted["offered"] = offered.name
    if not (offered and offered.exists()):
        return ""  # the student has seen it and removed it
    return (
        f"The course has changed {copy.name}. Your copy stays as it is; the new notebook is beside "
        f"it: {offered.name}."
    )


def _link(link: Path, folder: Path) -> None:
    """Let `link` lead to a folder; what the student has put there stays."""
    if link.is_symlink():
        link.unlink()  # the course may have moved
    if not link.exists():
        link.symlink_to(folder, target_is_directory=True)


def _cleared(path: Path) -> bytes:
    """A notebook of the course as a file without outputs, with links that lead on from there."""
    book = cells.read(path)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
        elif cell["cell_type"] == "markdown":
            source = "".join(cell["source"]).replace(f"](../{DOCUMENTS}/", f"]({DOCUMENTS}/")
            cell["source"] = source.splitlines(keepends=True)
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
