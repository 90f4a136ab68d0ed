"""Helpers and ranks of notebooks that are gone: none should live, and some system may keep one."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.doctor.finding import Finding

# A helper's stderr, or a rank's, is a file in its session's folder, which bears the pid of the
# notebook or command it works for (launch/folder.py).
LOG = re.compile(r"/\.runs/\d{8}-\d{6}-\w+-(?P<owner>\d+)/(?:agent\.log|.*/stderr\.log)")


@dataclass(frozen=True)
class Helper:
    """A process that works for a notebook or a command.

    Attributes:
        pid: its own.
        owner: the pid of what it works for.
        orphan: whether that is gone.
        stopped: whether a signal has stopped it, as SIGSTOP does.
    """

    pid: int
    owner: int
    orphan: bool
    stopped: bool


def look() -> Iterator[Finding]:
    """Read the facts, and say what they mean; nothing where the system does not tell."""
    if Path("/proc/self/fd").is_dir():
        yield from findings(read())


def read() -> list[Helper]:
    """The helpers and ranks of this user, of all notebooks and commands."""
    return [found for path in Path("/proc").glob("[0-9]*") if (found := helper(path))]


def helper(process: Path) -> Helper | None:
    """The helper or rank that a folder of /proc is about; None if it is about something else."""
    try:
        log = LOG.search(os.readlink(process / "fd" / "2"))
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # another user's, or gone meanwhile
        return None
    if not log:
        return None
    owner = int(log["owner"])
    return Helper(int(process.name), owner, not Path(f"/proc/{owner}").exists(), state == "T")


def findings(facts: list[Helper]) -> Iterator[Finding]:
    """What the facts mean for the labs."""
    for each in facts:
        if each.orphan:
            yield Finding(
                "note",
                "helper",
                f"process {each.pid} works for process {each.owner}, which is gone",
                f"kill -KILL {each.pid}: it takes memory, and perhaps a core",
            )
        elif each.stopped:
            yield Finding(
                "note",
                "helper",
                f"process {each.pid} was stopped by a signal; process {each.owner} waits for it",
                f"kill -CONT {each.pid} wakes it; kill -KILL {each.pid} lets the next run start "
                "another",
            )
    stale = sum(each.orphan or each.stopped for each in facts)
    if not stale:
        yield Finding("ok", "helpers", f"{len(facts)} at work, none left over")
