"""What the course notes beside the worker files: small JSON files in `workers/`."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from course_utils import paths


def read(name: str) -> dict[str, Any]:
    """What was noted under this name; empty if nothing was."""
    try:
        return json.loads((paths.workers() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is no such file yet, or someone has edited it
        return {}


@contextlib.contextmanager
def changing(name: str) -> Iterator[dict[str, Any]]:
    """What was noted under this name, to be changed in place; other kernels wait until it is."""
    path = paths.workers() / name
    # The standard library's lock: ./run.sh extract works before any package is installed.
    with paths.writing(), path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        noted = read(name)
        yield noted
        new = path.with_suffix(".new")
        new.write_text(json.dumps(noted, indent=1), encoding="utf-8")
        os.replace(new, path)  # a reader sees the old notes or the new ones
