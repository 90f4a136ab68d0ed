"""Where things are: the checkout, its notebooks, a student's copies, worker files."""

import os
from pathlib import Path

from nbtorchrun.settings import make

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
LESSONS = ROOT / "lessons"


def home() -> Path:
    """The folder that holds `my/`, `workers/` and the run folders.

    `COURSE_HOME` if it is set; otherwise the checkout, or the user's cache folder if the checkout
    is read-only.
    """
    if chosen := os.environ.get("COURSE_HOME"):
        return Path(chosen).expanduser().resolve()
    if os.access(ROOT, os.W_OK):
        return ROOT
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "distributed-course"


def data() -> Path:
    """The folder of downloaded data: `data/` of the checkout, unless it is empty and read-only."""
    ours = ROOT / "data"
    filled = any(path.is_dir() for path in ours.glob("*"))
    return ours if filled or os.access(ours, os.W_OK) else home() / "data"


def workers() -> Path:
    """The folder of the worker files; made if it does not exist."""
    return make(home() / "workers")


def my() -> Path:
    """The folder of the student's own copies of the notebooks; made if it does not exist."""
    return make(home() / "my")
