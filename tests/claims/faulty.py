"""Runs a worker file with a fault in it: `faulty.py FAULT FILE [arguments]`, on each rank.

The script stays as the student sees it. The faults are put in from outside: `messages.py` has those
of what ranks send to each other, `computing.py` those of what one process does.
"""

import contextlib
import sys
from pathlib import Path

from nbtorchrun.worker import report
from nbtorchrun.worker.bootstrap import execute
from tests.claims import computing, messages

NONE = "none"  # no fault: what the script measures


def put_in(fault: str) -> contextlib.AbstractContextManager:
    """Put a fault into this process; some hold only within the context that is returned."""
    if fault == NONE:
        return contextlib.nullcontext()
    if change := messages.CHANGES.get(fault):
        return messages.Messages(change)
    put = messages.RECEIVED.get(fault) or messages.PATCHES.get(fault) or computing.PATCHES[fault]
    return put() or contextlib.nullcontext()


def main() -> None:
    """Put the fault in, then run the script as `python FILE` would."""
    fault, sys.argv = sys.argv[1], sys.argv[2:]
    script = Path(sys.argv[0])
    sys.path[0] = str(script.parent)
    with put_in(fault):
        report(put_in=fault)
        execute(str(script))


if __name__ == "__main__":
    main()
