"""What the course notes beside the worker files: small JSON files in `workers/`."""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from filelock import FileLock

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
    with paths.writing(), FileLock(path.with_suffix(".lock")):
        noted = read(name)
        yield noted
        new = path.with_suffix(".new")
        new.write_text(json.dumps(noted, indent=1), encoding="utf-8")
        os.replace(new, path)  # a reader sees the old notes or the new ones
