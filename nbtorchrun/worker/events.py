"""A rank's events, such as reports: to its log, from which the notebook reads them, or printed."""

import contextlib
import json
import os
from pathlib import Path
from time import monotonic_ns
from typing import Any

LOG, MEETS_AT = "events.jsonl", "meets_at"  # in the folder of a rank
_owner = os.getpid()  # the rank; what it forks has another pid
_events: str | None = None  # the rank's log, under `launch`


def _meets_at() -> str:
    """Where torchrun sends the ranks of this process's run to meet: no other run is there."""
    return ":".join(os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))


_began_at = _meets_at()  # whatever the script puts into its environment later


def write_events_to(folder: Path) -> None:
    """This process is a rank of `launch`: its events go to that folder, whatever it changes."""
    global _owner, _events, _began_at
    _owner, _events, _began_at = os.getpid(), str(folder / LOG), _meets_at()
    (folder / MEETS_AT).write_text(_began_at)


def rank() -> int:
    """This process's global rank; 0 for a script that runs alone."""
    return int(os.environ.get("RANK", 0))


def is_rank() -> bool:
    """Whether this process is the rank itself, and no fork of it."""
    return os.getpid() == _owner


def plain(value: Any) -> Any:
    """Convert `value` for JSON: tensors and arrays to numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def emit(kind: str, data: dict[str, Any]) -> None:
    """Append one event to this rank's log, or print it if no notebook listens."""
    path = _events if is_rank() else None
    path = path or _events_of_the_parent()
    if path is None:
        text = "  ".join(f"{name}={value}" for name, value in data.items())
        # With the line's end in the text, an unbuffered stream gets one write: ranks share it.
        print(f"{kind} rank {rank()}: {text}\n", end="", flush=True)
        return
    line = json.dumps({"kind": kind, "at": monotonic_ns(), "data": data}) + "\n"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(log, line.encode())
    finally:
        os.close(log)


def _events_of_the_parent() -> str | None:
    """The log of the rank that started this process; None without `launch`.

    None as well for a rank of another run, as of a torchrun that the rank started: that is where
    this process meets the others of its run.
    """
    folder = os.environ.get("NBTORCHRUN_RUN_DIR")
    if not folder:
        return None
    folder = os.path.join(folder, f"rank_{os.environ.get('LOCAL_RANK')}")
    with contextlib.suppress(OSError), open(os.path.join(folder, MEETS_AT)) as file:
        if file.read() == _began_at:
            return os.path.join(folder, LOG)
    return None
