"""A Python that has a torch but not the course, as on Colab or Kaggle, and the course to clone."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

from course_utils import paths
from tools.execute import FIRST_CELL

SOURCE = FIRST_CELL.read_text()
TELL = "\nimport course_utils; print('course:', course_utils.__file__)"
IGNORED = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")


class Guest:
    """A Python in an environment of its own, and an empty folder for a notebook.

    Attributes:
        folder: where the notebook is.
        repository: what the first cell clones.
        python: the program.
        packages: the folder of its packages.
    """

    def __init__(self, folder: Path):
        self.folder, self.repository = folder / "content", folder / "the course.git"
        self.folder.mkdir()
        venv.create(folder / "env", with_pip=False)
        self.python = folder / "env/bin/python"
        (self.packages,) = (folder / "env/lib").glob("python*/site-packages")

    def have(self, *names: str) -> None:
        """Let dummies of packages be installed."""
        for name in names:
            (self.packages / f"{name}.py").touch()

    def lack(self, *names: str) -> None:
        """Let dummies of packages not be installed."""
        for name in names:
            (self.packages / f"{name}.py").unlink()

    def have_torch(self, version: str) -> None:
        """Let a dummy of this version of torch be installed, and no other."""
        for path in self.packages.glob("torch-*"):
            shutil.rmtree(path)
        self.have("torch")
        described = self.packages / f"torch-{version}.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Name: torch\nVersion: {version}\n")

    def publish(self, *folders: str) -> None:
        """Put folders of the course, as they are here, into a git repository."""
        for name in folders:
            shutil.copytree(paths.ROOT / name, self.repository / name, ignore=IGNORED)
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "all"]):
            subprocess.run(["git", *command], cwd=self.repository, check=True)

    def first_cell(self, repository: str | None = None) -> str:
        """The source of the first cell, with this address in it; otherwise the repository's."""
        address = str(self.repository) if repository is None else repository
        return re.sub(r'(?<=^REPOSITORY = )".*?"', repr(address), SOURCE, flags=re.MULTILINE)

    def run(
        self, folder: Path | None = None, more: str = TELL, repository: str | None = None
    ) -> subprocess.CompletedProcess:
        """Run the first cell in a folder, and then `more`."""
        return self.run_code(self.first_cell(repository) + more, folder)

    def run_code(self, code: str, folder: Path | None = None) -> subprocess.CompletedProcess:
        """Run any code as this guest."""
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [self.python, "-c", code],
            cwd=folder or self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
