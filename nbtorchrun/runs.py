"""What a run leaves behind, for the notebook to examine."""

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def lines(text: str) -> list[str]:
    """The lines of a text, as Python counts those of a script: only a newline ends one.

    A carriage return, which progress bars use, a form feed or U+2028 does not.
    """
    return text.removesuffix("\n").split("\n") if text else []


@dataclass(frozen=True)
class Rank:
    """One rank of a run.

    Attributes:
        index: its place among the ranks of this machine.
        folder: the run's; it exists as long as this object does. The rank's own is `rank_N` in it.
        exitcode: its exit status; minus the signal's number if a signal ended it; None if the
            launcher ended it, or if it is unknown.
    """

    index: int
    folder: Any = field(repr=False)
    exitcode: int | None = None

    @property
    def dir(self) -> Path:
        """The folder with this rank's logs."""
        return self.folder.path / f"rank_{self.index}"

    @property
    def number(self) -> int:
        """Its global rank: on a single machine, the index."""
        written = self._text("pid").split()
        return int(written[1]) if written else self.index

    @property
    def pid(self) -> int | None:
        """The pid of its process; None before it has started."""
        written = self._text("pid").split()
        return int(written[0]) if written else None

    @property
    def stdout(self) -> str:
        """All that the rank printed."""
        return self._text("stdout.log")

    @property
    def stderr(self) -> str:
        """All that the rank wrote to stderr: warnings, the traceback."""
        return self._text("stderr.log")

    @property
    def stack(self) -> str:
        """The Python stacks of the rank's threads when the run was found hanging, or ''."""
        return self._text("stack.txt")

    @property
    def reports(self) -> list[dict[str, Any]]:
        """What the rank passed to `report`, in order."""
        return [event["data"] for event in self.events() if event["kind"] == "report"]

    def events(self) -> list[dict[str, Any]]:
        """What the rank recorded: `{"kind", "at" (ns), "data"}`; group, report, mark or end."""
        written = self._text("events.jsonl").splitlines()
        return [found for line in written if (found := event(line))]

    def last(self, kind: str) -> dict[str, Any] | None:
        """The data of the last event of `kind`, or None."""
        for line in reversed(self._text("events.jsonl").splitlines()):
            # Before it is parsed: there may be many large reports.
            if f'"{kind}"' in line and (found := event(line)) and found["kind"] == kind:
                return found["data"] | {"at": found["at"]}
        return None

    def _text(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.dir / name).read_bytes().decode("utf-8", errors="backslashreplace")
        return ""


def event(line: str) -> dict[str, Any] | None:
    """What a line of the events records; None for half a line, or what the script wrote there."""
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict) and found.keys() >= {"kind", "at", "data"}:
            return found
    return None


@dataclass(repr=False)
class Run:
    """A run that has ended.

    Attributes:
        name: the notebook's name for it.
        command: the command for the same run in a terminal.
        seconds: from the call to the last rank's end.
        folder: the run's private folder, which exists as long as this object does.
        ranks: its ranks on this machine, in order.
        verdict: why it failed; None if it did not.
        note: what is said before its output; '' if there is nothing to say.
    """

    name: str
    command: str
    folder: Any
    ranks: list[Rank]
    seconds: float = 0.0
    verdict: Any = None
    note: str = ""

    def __repr__(self) -> str:
        how = "ok" if self.ok else self.verdict.kind
        return f"<Run {self.name}: {self.command}, {how}>"

    @property
    def ok(self) -> bool:
        """Whether every rank ended without an error."""
        return self.verdict is None

    @property
    def dir(self) -> Path:
        """The run's private folder."""
        return self.folder.path

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The reports of all ranks, rank by rank, each with its `rank`."""
        return [
            {"rank": rank.number} | report | {"rank": rank.number}  # first, whatever it reports
            for rank in self.ranks
            for report in rank.reports
        ]

    def series(self, name: str, rank: int = 0) -> list[Any]:
        """The values that `rank` reported under `name`, in order."""
        return [report[name] for report in self.ranks[rank].reports if name in report]

    def timeline(self) -> list[dict[str, Any]]:
        """What the ranks marked: `{"rank", "name", "start", "end"}`, in seconds from the first."""
        marks = [
            {"rank": rank.number, **event["data"]}
            for rank in self.ranks
            for event in rank.events()
            if event["kind"] == "mark"
        ]
        origin = min((mark["start"] for mark in marks), default=0)
        for mark in marks:
            mark["start"] = (mark["start"] - origin) / 1e9
            mark["end"] = (mark["end"] - origin) / 1e9
        return sorted(marks, key=lambda mark: (mark["rank"], mark["start"]))

    @property
    def place(self) -> str:
        """The back end and device of the ranks, as `gloo · cpu`; '' if no group was started."""
        for rank in self.ranks:
            if group := rank.last("group"):
                return f"{group['backend']} · {group['device']}"
        return ""
