"""What is known of each rank when a run has failed."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils import paths
from course_utils.runs import Rank, Run

# What a rank says when another is gone: a consequence, never the cause.
CONSEQUENCE = re.compile(
    r"closed by (remote )?peer|reset by peer|broken pipe|connect\w* (refused|failed)"
    r"|remote process exited|failed to recv|store.*(timeout|closed)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Place:
    """A line of the student's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"workers/{Path(self.file).name}, line {self.line}"

    def excerpt(self) -> list[str]:
        """The line between its neighbours, numbered."""
        try:
            source = Path(self.file).read_text(errors="replace").splitlines()
        except OSError:
            return []
        numbers = range(max(1, self.line - 1), min(len(source), self.line + 1) + 1)
        return [f"  {'>' if n == self.line else ' '} {n:4d}  {source[n - 1]}" for n in numbers]


@dataclass(frozen=True)
class Call:
    """A collective or a message that a rank began.

    Attributes:
        name: as `all_reduce`.
        number: how many collectives of its group this rank had begun, this one included.
        group: the group's name; '' is the default group.
        shape: of the tensor, with its dtype, as `[3] torch.float32`; '' where ranks may differ.
        peer: the other rank of a message, as `rank 1`, or 'any rank'; '' for a collective.
        place: the student's line, or None.
        returned: whether the function came back; what it started may still be under way.
        raised: whether it came back with an exception.
    """

    name: str
    number: int
    group: str
    shape: str
    peer: str
    place: Place | None
    returned: bool
    raised: bool

    def __str__(self) -> str:
        if self.peer:
            preposition = "to" if self.name.endswith("send") else "from"
            return f"{self.name} {preposition} {self.peer}"
        return f"{self.name} #{self.number}" if self.number else self.name

    @property
    def brought(self) -> tuple[str, int, str]:
        """What all ranks have to bring alike: the function, how many values, and their dtype."""
        sizes, _, dtype = self.shape.rpartition(" ")
        return self.name, math.prod(map(int, re.findall(r"\d+", sizes))), dtype

    @property
    def at(self) -> str:
        """The call with its line."""
        return f"{self} ({self.place})" if self.place else str(self)


@dataclass(frozen=True)
class Error:
    """An exception that ended a rank, or a thread of it.

    Attributes:
        at: when, in nanoseconds on the machine's clock.
        text: its type and message.
        place: the innermost line of the student's code on its way, or None.
    """

    at: int
    text: str
    place: Place | None

    @property
    def kind(self) -> str:
        """Its text without what differs from rank to rank."""
        return re.sub(r"\brank \d+(: *[\d ]+)?", "rank", self.text)

    @property
    def is_consequence(self) -> bool:
        """Whether it only says that another rank is gone."""
        return bool(CONSEQUENCE.search(self.text))


@dataclass(frozen=True)
class Witness:
    """What is known of one rank.

    Attributes:
        number: the rank.
        exitcode: how its process ended by itself; None if it was ended from outside.
        how: "finished", "exited" or "raised", as it recorded itself; None if it could not.
        ended: when it recorded that, in nanoseconds.
        error: the exception that ended it, or a thread of it.
        calls: its last calls, oldest first.
        stack: the innermost line of the student's code when the run was stopped, or None.
        stopped: whether it was stopped by a signal, as SIGSTOP does.
    """

    number: int
    exitcode: int | None
    how: str | None
    ended: int
    error: Error | None
    calls: tuple[Call, ...]
    stack: Place | None
    stopped: bool

    @property
    def waits_in(self) -> Call | None:
        """The call it had begun and that had not come back, or None."""
        return self.calls[-1] if self.calls and not self.calls[-1].returned else None

    @property
    def thrown_out_of(self) -> Call | None:
        """The call whose exception it was ended with before it could record that, or None."""
        return self.calls[-1] if self.calls and self.calls[-1].raised and not self.how else None


def gather(run: Run, stopped: set[int]) -> list[Witness]:
    """What is known of the ranks of `run`; `stopped` are those that a signal had stopped."""
    return [_witness(rank, rank.index in stopped) for rank in run.ranks]


def _witness(rank: Rank, stopped: bool) -> Witness:
    end = rank.last("end") or {}
    raised = rank.last("thread") or (end if end.get("how") == "raised" else None)
    return Witness(
        number=rank.number,
        exitcode=rank.exitcode,
        how=end.get("how"),
        ended=end.get("at", 0),
        error=raised and _error(raised),
        calls=tuple(noted_calls(rank)),
        stack=_innermost(rank.stack),
        stopped=stopped,
    )


def _error(end: dict[str, Any]) -> Error:
    text = f"{end['type']}: {end['message']}" if end["message"] else end["type"]
    place = next(
        (Place(f["file"], f["line"]) for f in reversed(end["frames"]) if is_students(f["file"])),
        None,
    )
    # A DataLoader's worker process sends its traceback as text.
    quoted = re.findall(r'File "([^"]+)", line (\d+)', end["message"])
    for file, line in quoted:
        if is_students(file):
            place = Place(file, int(line))
    if quoted:
        text = text.partition("\n")[0] + " " + text.strip().rpartition("\n")[2]
    return Error(end["at"], text, place)


def noted_calls(rank: Rank) -> list[Call]:
    """The last calls of a rank, as worker/calls.py noted them, oldest first."""
    try:
        # A long path is cut, and that may be in the middle of a character.
        noted = (rank.dir / "calls.txt").read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = [line.rstrip(" ").split("\t") for line in noted.splitlines()]
    found = []
    for fields in sorted((f for f in lines if len(f) == 9), key=lambda fields: int(fields[1])):
        state, _, name, number, group, shape, peer, line, file = fields
        place = Place(file, int(line)) if file else None
        peer = "" if peer == "None" else f"rank {peer}" if peer.isdigit() else peer
        ended = state != ".", state == "!"
        found.append(Call(name, int(number), group, shape, peer, place, *ended))
    return found


def _innermost(dump: str) -> Place | None:
    """The innermost line of the student's code in the main thread of faulthandler's first dump."""
    main_thread = re.split(r"\n\n|\nThread |\nCurrent", dump.partition("Current thread")[2])[0]
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', main_thread):
        if is_students(file):  # the innermost frame comes first in such a dump
            return Place(file, int(line))
    return None


def is_students(file: str) -> bool:
    """Whether a file lies in `workers/`."""
    return Path(file).parent == paths.workers()


def differing(witnesses: list[Witness]) -> list[tuple[Witness, Call]] | None:
    """The first collective that the ranks did not call alike: each rank's call of that number.

    None if all that is still noted agrees.
    """
    noted = [
        {(call.group, call.number): call for call in each.calls if call.number and not call.peer}
        for each in witnesses
    ]
    shared = set.intersection(*map(set, noted)) if noted else set()
    for key in sorted(shared, key=lambda key: key[1]):
        if len({calls[key].brought for calls in noted}) > 1:
            return [(each, calls[key]) for each, calls in zip(witnesses, noted, strict=True)]
    return None
