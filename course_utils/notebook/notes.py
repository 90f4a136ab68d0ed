"""What the course notes beside the worker files: small JSON files in `workers/`."""

import json
from typing import Any

from course_utils import paths


def read(name: str) -> dict[str, Any]:
    """What was noted under this name; empty if nothing was."""
    try:
        return json.loads((paths.workers() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is no such file yet, or two kernels wrote at once
        return {}


def write(name: str, noted: dict[str, Any]) -> None:
    """Note this in place of what was noted under this name."""
    (paths.workers() / name).write_text(json.dumps(noted, indent=1), encoding="utf-8")
