"""What the tests of grading share: files that students hand in, and the command that grades."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import paths


class Class:
    """A folder of what was handed in, and the command line in it."""

    def __init__(self, folder: Path):
        self.folder = folder

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def notebook(self, name: str, *cells: str, kind: str = "code") -> Path:
        """A notebook of cells of one kind."""
        found = [{"cell_type": kind, "metadata": {}, "source": cell} for cell in cells]
        return self.file(name, json.dumps({"cells": found}))

    def start(self, *arguments: str | Path) -> subprocess.Popen:
        """The grader in a process of its own: it ends all that it finds below itself."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tools", "grade", *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def grade(self, *arguments: str | Path, within: float = 280) -> subprocess.CompletedProcess:
        """Its status and what it printed, and the `tests` of its JSON."""
        grader = self.start(*arguments, "--json", "out.json")
        out, err = grader.communicate(timeout=within)
        done = subprocess.CompletedProcess(arguments, grader.returncode, out, err)
        written = self.folder / "out.json"
        done.tests = json.loads(written.read_text())["tests"] if written.exists() else []
        return done


@pytest.fixture
def students(tmp_path):
    """A class whose answers are graded."""
    return Class(tmp_path)
