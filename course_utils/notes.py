"""What the course notes: small JSON files beside what they are about, mostly in `workers/`."""

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_utils import paths
from nbtorchrun import settings


def read(name: str, folder: Path | None = None) -> dict[str, Any]:
    """What was noted under this name in a folder, `workers/` if None; empty if nothing was."""
    try:
        return json.loads(((folder or paths.workers()) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is no such file yet, or someone has edited it
        return {}


@contextlib.contextmanager
def changing(name: str, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """What `read` returns, to be changed in place; other processes wait until it is."""
    path = (folder or paths.workers()) / name
    # The standard library's lock: ./run.sh extract works before any package is installed.
    with settings.writing(), path.with_suffix(".lock").open("w") as lock:
        with contextlib.suppress(OSError):  # a disk without locks, as some that networks share
            fcntl.flock(lock, fcntl.LOCK_EX)
        noted = read(name, folder)
        yield noted
        settings.replace(path, json.dumps(noted, indent=1).encode())
