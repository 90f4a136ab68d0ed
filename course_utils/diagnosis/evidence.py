"""What is known about each rank when a run has failed."""

import re
import signal
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from course_utils.diagnosis.calls import (
    Call,
    Place,
    doing,
    is_students,
    noted_calls,
    unended_call,
)
from course_utils.runs import Rank, Run

# A call that failed after this many seconds had waited for other ranks; one that refuses its
# arguments does so at once.
WAITED = 0.3
LONGEST = 2000  # characters of an error that a verdict repeats


class Fate(Enum):
    """How a rank ended."""

    FINISHED = "finished"  # it reached the end of its script
    RAISED = "raised"  # an exception ended it
    EXITED = "exited"  # by `sys.exit`, or with an error before its script began
    KILLED = "killed"  # by a signal
    VANISHED = "vanished"  # in the middle of its script and without a record, as by `os._exit`
    STOPPED = "stopped"  # by the launcher, or by the SIGTERM that torchrun sends


def _fate(rank: Rank, gone: bool) -> Fate:
    """The fate of a rank: as it recorded it, or else by its exit code."""
    if end := rank.last("end"):
        return Fate(end["how"])
    if rank.exitcode is None:
        return Fate.VANISHED if gone else Fate.STOPPED
    if rank.exitcode < 0:
        return Fate.STOPPED if rank.exitcode == -signal.SIGTERM else Fate.KILLED
    began = (rank.dir / "calls.txt").exists()
    return Fate.VANISHED if began or rank.exitcode == 0 else Fate.EXITED


@dataclass(frozen=True)
class Error:
    """An exception that ended a rank, or a thread of it."""

    at: int  # when, in nanoseconds on the machine's clock
    text: str  # its type and message
    message: str
    place: Place | None  # the innermost line of the student's code in its traceback
    call: dict[str, Any] | None  # the call of torch.distributed that raised it, and for how long

    @property
    def kind(self) -> str:
        """Its text, without the parts that differ from rank to rank."""
        return re.sub(r"\brank \d+(: *[\d ]+)?", "rank", self.text)


class Witness:
    """What is known about one rank.

    Args:
        rank: with the exit code of its process, or None if that was ended from outside.
        stopped: whether a signal had stopped it, as SIGSTOP does.
        gone: whether it had ended before the run was stopped, without a record of how.
    """

    def __init__(self, rank: Rank, stopped: bool, gone: bool):
        end = rank.last("end") or {}
        self.number, self.index, self.exitcode = rank.number, rank.index, rank.exitcode
        self.stopped, self.fate = stopped, _fate(rank, gone)
        self.ended_at = end.get("at", 0)  # in nanoseconds on the machine's clock; 0 if unrecorded
        raised = rank.last("thread") or (end if self.fate is Fate.RAISED else None)
        self.error = _error(raised) if raised else None  # that ended it, or a thread of it
        self.exit = _error(end | end["said"]) if "said" in end else None  # its SystemExit
        self.left_by = rank.last("left") or {}  # `by` and `to`, if it left by `os._exit` or `exec`
        self.calls = noted_calls(rank)  # its last ones, oldest first
        self.on_gpu = unended_call(rank)  # a call that has not ended there
        self.doing = doing(rank)  # its last comment on what it is doing; '' if there is none
        # The innermost line of the student's code when the run was stopped.
        self.stack = _innermost(rank.stack)

    @property
    def ended(self) -> bool:
        """Whether it ended by itself, as Python ends."""
        return self.fate in (Fate.FINISHED, Fate.RAISED, Fate.EXITED)

    @property
    def went_well(self) -> bool:
        """Whether it ended by itself and without an error."""
        return self.fate is Fate.FINISHED or (self.fate is Fate.EXITED and not self.exitcode)

    @property
    def last_call(self) -> Call | None:
        """The call that it began last, or None."""
        return self.calls[-1] if self.calls else None

    @property
    def waits_in(self) -> Call | None:
        """The call that it began and that has not returned, or not ended on its GPU; or None."""
        unreturned = self.last_call if self.last_call and not self.last_call.returned else None
        return None if self.ended else self.on_gpu or unreturned

    @property
    def failed_in(self) -> Call | None:
        """The call that it began last, if that raised, or None."""
        return self.last_call if self.last_call and self.last_call.state == "!" else None

    @property
    def place(self) -> Place | None:
        """Where it was when another rank's end or the launcher stopped it."""
        if self.error:
            return self.error.place
        if self.waits_in and self.waits_in.place:
            return self.waits_in.place
        return self.stack or (self.last_call.place if self._call_raised else None)

    @property
    def was_waiting(self) -> bool:
        """Whether it was waiting for other ranks, as far as it could record that."""
        return bool(self.error or self.waits_in or self._call_raised)

    def ended_before(self, error: Error) -> bool:
        """Whether this rank had ended by itself when another rank's call failed with `error`."""
        if self.error:  # one whose own call failed is another consequence
            return not self.error.call and self.error.at <= error.at
        return self.fate is not Fate.STOPPED and self.ended_at <= error.at

    def meets(self, call: Call) -> bool:
        """Whether this rank has made the other ranks' `call` too."""
        if call.peer:
            return any(c.peer and c.sends != call.sends for c in self.calls)
        return any((c.group, c.number) == (call.group, call.number) for c in self.calls)

    @property
    def _call_raised(self) -> bool:
        """Whether its last call raised, and the process ended before it could record that."""
        return bool(self.failed_in and not self.ended)


class Evidence:
    """What is known about a run that has ended.

    Args:
        run: the run, with the exit codes of its ranks.
        outcome: the agent's reply; where the launcher stopped the run, `"over"` says why, and
            `"gone ranks"` and `"stopped ranks"` which had left and which a signal had stopped,
            and `"by hand"` whether it was the student who stopped it, after how many `"quiet"`
            seconds, in which no rank computed or wrote.
        world_size: the number of ranks, those of other machines included.
    """

    def __init__(self, run: Run, outcome: dict[str, Any], world_size: int):
        stopped, gone = outcome.get("stopped ranks", ()), outcome.get("gone ranks", ())
        self.run = run
        self.world_size = world_size
        self.over = outcome.get("over")
        self.by_hand = bool(outcome.get("by hand"))
        self.quiet = outcome.get("quiet", 0.0)
        self.forkserver = outcome.get("forkserver")  # how it ended, if it did
        self.launcher_error = outcome.get("error") or outcome.get("stopped")
        self.ranks = [
            Witness(rank, rank.index in stopped, rank.index in gone) for rank in run.ranks
        ]

    @cached_property
    def raised(self) -> list[Witness]:
        """The ranks with an exception that is not only the consequence of another rank's end."""
        failed = [rank for rank in self.ranks if rank.error]
        return [rank for rank in failed if not self._is_consequence(rank)]

    def _is_consequence(self, rank: Witness) -> bool:
        """Whether a call of `rank` to other ranks failed because one of them was gone or absent."""
        if not rank.error.call:
            return False
        others = [other for other in self.ranks if other is not rank]
        return any(other.ended_before(rank.error) for other in others) or bool(
            self.absent_for(rank)
        )

    def absent_for(self, rank: Witness) -> list[Witness]:
        """The ranks that lived and had not come to the call in which `rank` waited and failed."""
        failed = rank.failed_in
        if not failed or not rank.error or (rank.error.call or {}).get("seconds", 0) < WAITED:
            return []
        others = [other for other in self.ranks if other is not rank and not other.ended]
        if failed.peer:
            return [o for o in others if o.number == failed.peer_number and not o.meets(failed)]
        return [other for other in others if not other.meets(failed)]

    @cached_property
    def ended_badly(self) -> list[Witness]:
        """The ranks that ended badly without an exception; stopped ones if there are no others."""
        bad = [r for r in self.ranks if not r.error and (r.exitcode or r.fate is Fate.VANISHED)]
        return [rank for rank in bad if rank.fate is not Fate.STOPPED] or bad

    @cached_property
    def cut_short(self) -> list[Witness]:
        """The ranks that were ended only because others were gone."""
        bad = self.ended_badly
        return [rank for rank in self.ranks if rank not in bad and not rank.went_well]

    @property
    def culprits(self) -> list[Witness]:
        """The ranks whose bad end is the cause; none if gloo only aborted after the script.

        That happens when a rank closes connections on which other ranks still wait.
        """
        only_aborted = all(rank.fate is Fate.FINISHED for rank in self.ended_badly)
        return [] if self.left_waiting and only_aborted else self.ended_badly

    @property
    def left_waiting(self) -> list[Witness]:
        """The ranks among `cut_short` that were waiting for other ranks."""
        return [rank for rank in self.cut_short if rank.was_waiting]

    @cached_property
    def differing(self) -> list[tuple[Witness, Call]]:
        """Each rank's call of the first collective on which the ranks disagree.

        Empty if the ranks agree on every call in the log.
        """
        noted = [
            {(call.group, call.number): call for call in rank.calls if call.is_collective}
            for rank in self.ranks
        ]
        for key in sorted(set.intersection(*map(set, noted)), key=lambda key: key[1]):
            if len({calls[key].signature for calls in noted}) > 1:
                return [(rank, calls[key]) for rank, calls in zip(self.ranks, noted, strict=True)]
        return []


def _error(event: dict[str, Any]) -> Error:
    message, frames = event["message"], [(f["file"], f["line"]) for f in event["frames"]]
    text = f"{event['type']}: {message}" if message else event["type"]
    # A DataLoader's worker process sends its traceback as text.
    quoted = [
        (file, int(line)) for file, line in re.findall(r'File "([^"]+)", line (\d+)', message)
    ]
    places = [Place(file, line) for file, line in frames + quoted if is_students(file)]
    if quoted:
        text = text.partition("\n")[0] + " " + text.strip().rpartition("\n")[2]
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text):,} characters; the log has all)"
    place = places[-1] if places else None
    return Error(event["at"], text, message, place, event.get("call"))


def _innermost(dump: str) -> Place | None:
    """The innermost line of the student's code in the main thread of faulthandler's first dump."""
    main_thread = re.split(r"\n\n|\nThread |\nCurrent", dump.partition("Current thread")[2])[0]
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', main_thread):
        if is_students(file):  # the innermost frame comes first in such a dump
            return Place(file, int(line))
    return None
