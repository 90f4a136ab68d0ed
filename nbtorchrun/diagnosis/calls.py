"""The calls of torch.distributed that each rank logged, and lines of the student's code."""

import json
import math
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbtorchrun import settings
from nbtorchrun.runs import Rank, lines

# In a rank's folder; worker/unended.py, ending.py, asked.py and calls.py write them.
UNENDED, HANDLING, ANSWER = "unended.json", "handling.json", "answer.json"
MET = "meeting.json"


@dataclass(frozen=True)
class Place:
    """A line of the student's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{settings.shown(self.file)}, line {self.line}"

    def excerpt(self) -> list[str]:
        """The line and its two neighbours, numbered."""
        try:
            with tokenize.open(self.file) as file:  # in the encoding that the file declares
                source = lines(file.read())
        except (SyntaxError, UnicodeDecodeError):
            source = lines(Path(self.file).read_text(errors="replace"))
        except OSError:
            return []
        numbers = range(max(1, self.line - 1), min(len(source), self.line + 1) + 1)
        return [f"{'>' if n == self.line else ' '} {n:4d}  {source[n - 1]}" for n in numbers]


@dataclass(frozen=True)
class Call:
    """A collective or a message that a rank began."""

    name: str  # as `all_reduce`
    number: int  # from 1: of its group's collectives, or of the messages to or from that peer
    group: str  # the group's name; '' is the default group
    shape: str  # with the dtype, as `[3] torch.float32`; '' where the ranks' may differ
    peer: str  # the other rank of a message, as `rank 1`, or 'any rank'; '' for a collective
    agreed: str  # what else all ranks must agree on, as `src=0, op=sum`
    place: Place | None  # the student's line
    state: str  # `.` until the function returns, then `=`; `!` if it raised; `~` if C++ made it
    handled: int = 0  # which exception the rank handled when it made the call; 0 for none
    torchs: tuple[str, int] | None = None  # name and number in torch's flight recorder, if known

    def __str__(self) -> str:
        if self.peer:
            return f"{self.name} {'to' if self.sends else 'from'} {self.peer}"
        return f"{self.name} #{self.number}" if self.number else self.name

    @property
    def is_collective(self) -> bool:
        """Whether all ranks of the group must make this call."""
        return bool((self.number or self.torchs) and not self.peer)

    @property
    def sends(self) -> bool:
        """Whether this is the sending side of a message."""
        return self.name.endswith("send")

    @property
    def peer_number(self) -> int:
        """The other rank of a message; -1 for a collective, or if any rank will do."""
        number = self.peer.removeprefix("rank ")
        return int(number) if number.isdigit() else -1

    @property
    def returned(self) -> bool:
        """Whether the function returned or raised."""
        return self.state not in ".~"

    @property
    def signature(self) -> tuple[str, int, str, str]:
        """What must be the same on all ranks: function, number of values, dtype, src, dst, op."""
        sizes, _, dtype = self.shape.rpartition(" ")
        values = math.prod(map(int, re.findall(r"\d+", sizes)))
        return self.name, values, dtype, self.agreed

    @property
    def at(self) -> str:
        """The call with its line."""
        return f"{self} ({self.place})" if self.place else str(self)


def noted_calls(rank: Rank) -> list[Call]:
    """The last calls of a rank, as worker/calls.py logged them, oldest first."""
    lines = [line.split("\t") for line in _lines(rank)]
    found = []
    whole = [fields for fields in lines if len(fields) == 10]
    for fields in sorted(whole, key=lambda fields: int(fields[1].partition(" ")[0])):
        state, order, name, number, group, shape, peer, agreed, line, file = fields
        handled = order.partition(" ")[2] or 0  # only where an error was being handled
        place = Place(file, int(line)) if file else None
        peer = "" if peer == "None" else f"rank {peer}" if peer.isdigit() else peer
        call = Call(name, int(number), group, shape, peer, agreed, place, state, int(handled))
        found.append(call)
    return found


def unended_call(rank: Rank) -> Call | None:
    """The oldest collective that the rank's GPU has not ended (worker/unended.py), or None.

    It is numbered as torch does, which counts the barrier in `init` too.
    """
    return recorded_call(_json(rank, UNENDED))


def recorded_call(found: dict[str, Any] | None) -> Call | None:
    """A collective that torch's flight recorder has, as worker/unended.py writes it down."""
    if not found:
        return None
    place = Place(*found["place"]) if found["place"] else None
    torchs = found["name"], found["number"]
    return Call(
        **{"shape": "", "agreed": "", "state": "~", "torchs": torchs, **found, "place": place}
    )


def answer(rank: Rank) -> dict[str, Any]:
    """How the rank stood when it was asked last (worker/asked.py); empty if it never answered."""
    return _json(rank, ANSWER) or {}


def handling(rank: Rank) -> dict[str, Any]:
    """The exception that the rank handled last when it made a call; empty if there was none."""
    return _json(rank, HANDLING) or {}


@dataclass(frozen=True)
class Said:
    """What a rank said of itself, or of where the ranks meet, in `init_process_group`."""

    name: str  # the variable, as `RANK`
    value: str
    torchruns: str  # the value that torchrun had set
    from_variable: bool  # rather than from an argument of that name
    place: Place | None  # the student's line that set the variable, if one did

    @property
    def differs(self) -> bool:
        """Whether torchrun had said otherwise."""
        return self.value != self.torchruns


def met_as(rank: Rank) -> dict[str, Said]:
    """What the rank said in `init_process_group`, by variable; empty if it did not call that."""
    return {
        name: Said(name, value or "", torchruns or "", from_variable, place and Place(*place))
        for name, (value, torchruns, from_variable, place) in (_json(rank, MET) or {}).items()
    }


def _json(rank: Rank, name: str) -> Any:
    try:
        return json.loads((rank.dir / name).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def doing(rank: Rank) -> str:
    """The rank's last comment on what it is doing, as `F3, on stage 1`; '' if it made none."""
    return next((line[2:] for line in _lines(rank) if line[:1] == "#"), "")


def _lines(rank: Rank) -> list[str]:
    try:
        # A long path is cut, and that may be in the middle of a character.
        noted = (rank.dir / "calls.txt").read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip(" ") for line in noted.splitlines()]
