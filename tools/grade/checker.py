"""A copy of the course for each answer: one that rewrites its check changes no other's."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from course_utils import paths

PARTS = ("course_utils", "nbtorchrun", "tools", "lessons", "notebooks")


class Checker:
    """The course's files as they were before any answer ran, held in memory."""

    def __init__(self) -> None:
        self._files = {
            path.relative_to(paths.ROOT): (path.read_bytes(), path.stat().st_mtime)
            for path in _files()
        }

    def unpack(self, folder: Path) -> None:
        """Write them to a new folder, where nothing can be changed by mistake."""
        made = {folder / path.parent for path in self._files}
        for each in made:
            each.mkdir(parents=True, exist_ok=True)
        for path, (data, modified) in self._files.items():
            new = folder / path
            new.write_bytes(data)
            os.utime(new, (modified, modified))  # what Python has compiled stays valid
            new.chmod(0o444)
        for each in {parent for path in made for parent in (path, *path.parents)}:
            if each.is_relative_to(folder):
                each.chmod(0o555)


def _files() -> Iterator[Path]:
    embedded = (paths.ROOT / "data").glob("*")  # data sets that were downloaded have folders
    for path in itertools.chain(embedded, *((paths.ROOT / part).rglob("*") for part in PARTS)):
        if path.is_file():
            yield path
