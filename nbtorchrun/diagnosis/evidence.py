"""What is known about each rank when a run has failed."""

import re
import signal
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from nbtorchrun import settings
from nbtorchrun.diagnosis.calls import (
    Call,
    Place,
    answer,
    doing,
    handling,
    met_as,
    noted_calls,
    recorded_call,
    unended_call,
)
from nbtorchrun.diagnosis.source import handler_at
from nbtorchrun.runs import Rank, Run

# A call that failed after this many seconds had waited for other ranks; one that refuses its
# arguments does so at once.
WAITED = 0.3
LONGEST = 2000  # characters of an error that a verdict repeats
# How a connection that another rank closed is told of: by gloo, by NCCL and by torch's store.
LOST = re.compile(
    "connection (closed|reset) by peer|broken pipe|connection was (likely )?(closed|reset)|"
    "remote process exited|failed to (recv|send)|connection refused",
    re.IGNORECASE,
)


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
    """An exception that ended a rank, or a thread of it, or that it was handling to the end."""

    at: int  # when, in nanoseconds on the machine's clock
    text: str  # its type and message
    message: str
    place: Place | None  # the innermost line of the student's code in its traceback
    call: dict[str, Any] | None  # the call of torch.distributed that raised it, and for how long
    thread: str = ""  # the name of the thread that it ended
    behind: tuple[tuple[str, Place | None], ...] = ()  # what led to it: text and place, last first

    @property
    def kind(self) -> str:
        """Its text, without the parts that differ from rank to rank."""
        text = re.sub(r"\b(process|pid|pid\(s\)|0x) ?[\da-f]+", r"\1", self.text)
        return re.sub(r"\brank \d+(: *[\d ]+)?", "rank", text)

    @property
    def lost(self) -> bool:
        """Whether it only says that another rank has closed the connection."""
        said = (self.text, *(text for text, _ in self.behind))
        return bool(self.call) and any(map(LOST.search, said))


@dataclass(frozen=True)
class Handling:
    """An exception that a rank was handling when it left, or when it was stopped."""

    error: Error
    block: str  # `finally`, `except`, `with`, or '' if that is not known
    goes_on: bool  # whether the exception goes on after that block
    did: str  # what the rank did in there, as `called `os._exit``
    calls: int  # how many calls it had begun in there

    @property
    def is_its_end(self) -> bool:
        """Whether it kept the rank from going on, rather than being dealt with long ago."""
        return self.goes_on or self.calls <= 1

    def __str__(self) -> str:
        block = f", in `{self.block}`" if self.block else ""
        return f"was still handling this error{block}: it {self.did}"


class Witness:
    """What is known about one rank.

    Args:
        rank: with the exit code of its process, or None if that was ended from outside.
        stopped: whether a signal had stopped it, as SIGSTOP does.
        gone: whether it had ended before the run was stopped, without a record of how.
        asked: whether it was asked how it stood when the run was stopped.
    """

    def __init__(self, rank: Rank, stopped: bool, gone: bool, asked: bool):
        end = rank.last("end") or {}
        self.number, self.index, self.exitcode = rank.number, rank.index, rank.exitcode
        self.stopped, self.asked, self.fate = stopped, asked, _fate(rank, gone)
        self.ended_at = end.get("at", 0)  # in nanoseconds on the machine's clock; 0 if unrecorded
        self.exit = _error(end | end["said"]) if "said" in end else None  # its SystemExit
        self.left_by = rank.last("left") or {}  # `by` and `to`, if it left by `os._exit` or `exec`
        if self.exitcode is None and self.left_by.get("by") == "os._exit":  # nobody saw it end
            self.exitcode = int(self.left_by["to"]) & 0xFF if self.left_by["to"].isdigit() else None
        self.calls = noted_calls(rank)  # its last ones, oldest first
        self.met_as = met_as(rank)  # what it said of itself as it joined the group
        # The innermost line of the student's code when the run was stopped.
        self.stack = _innermost(rank.stack)
        self.answer = answer(rank)  # to whoever asked it how it stood
        self.on_gpu = unended_call(rank)  # a call that has not ended there
        # A collective of gloo in which it waits, also if C++ called it. Torch's number for it
        # isn't the student's.
        in_cpp = None if self._went_on else recorded_call(self.answer.get("waits"))
        self.in_cpp = in_cpp and replace(in_cpp, number=0)
        self.doing = doing(rank)  # its last comment on what it is doing; '' if there is none
        self.handling = self._handling(rank, end)
        self.error = self._own_error(rank, end)  # that ended it, or a thread of it

    def _own_error(self, rank: Rank, end: dict[str, Any]) -> Error | None:
        """The exception that ended the rank or a thread of it, or that it never got past."""
        raised = rank.last("thread") or (end if self.fate is Fate.RAISED else None)
        if raised:
            return _error(raised | {"at": min(raised["at"], raised.get("since") or raised["at"])})
        ended_well = self.fate is Fate.FINISHED or (self.exit and not self.exitcode)
        unheard = rank.last("unheard")  # by us: the script has its own way with threads' errors
        if unheard and not ended_well:
            return _error(unheard)
        if not self.handling:
            return None
        if self.exit:  # one with words, or from an `except` and with status 0, is meant
            meant = self.exit.message not in ("", str(self.exitcode)) or not self.exitcode
            return None if meant and self.handling.block == "except" else self.handling.error
        return self.handling.error if self.handling.is_its_end else None

    def _handling(self, rank: Rank, end: dict[str, Any]) -> Handling | None:
        """The exception that the rank was handling at its end, if any."""
        waits = self.waits_in
        if found := self.left_by.get("handling"):
            place = _last_of_students(self.left_by["frames"])
            did = f"called `{self.left_by['by']}`" + f" ({place})" * bool(place)
            found = found | {"at": self.left_by["at"]}
        elif found := end.get("handling"):
            did = "called `sys.exit`" + f" ({self.exit.place})" * bool(self.exit.place)
            found = found | {"at": end["at"]}
        elif self.ended or self.left_by.get("by"):  # what it answered was before that
            return None
        elif waits and waits.handled and waits.handled == handling(rank).get("number"):
            found, did = handling(rank), f"waited in {waits.at}"
        elif found := self.answer.get("handling"):
            at = waits.at if waits else self.stack or self._answered_place
            did = f"waited in {at}" if waits else f"was at {at}" if at else "did not get past that"
        if not found:
            return None
        number, handler = found["number"], found["handler"]
        block, goes_on = handler_at(handler["file"], handler["line"]) if handler else ("", False)
        if found is self.answer.get("handling") and self._went_on and not goes_on:
            return None  # it dealt with that soon after it was asked
        calls = sum(bool(number) and call.handled == number for call in self.calls)
        # Without a time it was there before whoever asked for it met an error.
        error = _error(found | {"at": found.get("since") or found.get("at", 0)})
        return Handling(error, block, goes_on, did, calls)

    @property
    def frames(self) -> list[Place]:
        """The lines of the student's code in which it was when it was asked, innermost first."""
        places = (Place(*frame) for frame in self.answer.get("frames", ()))
        return [place for place in places if settings.is_users(place.file)]

    @property
    def lines(self) -> list[Place]:
        """Where it was: the line, and those that led to it if they are known, outermost first."""
        return self.frames[::-1] or [self.place] * bool(self.place)

    @property
    def _went_on(self) -> bool:
        """Whether it was elsewhere when the run was stopped than when another rank had asked it."""
        return bool(self.stack and self.frames and self.stack != self.frames[0])

    @property
    def _answered_place(self) -> Place | None:
        return next(iter(self.frames), None)

    @property
    def kept_alive_by(self) -> tuple[str, Place | None] | None:
        """What keeps its process alive after its script's end, and where; None if nothing does."""
        if not self.asked or not self.ended or self.answer.get("stage") != "ending":
            return None
        if self.frames:
            return f"an exit handler ({self.frames[0]})", self.frames[0]
        for kind, those in (("thread", "threads"), ("child process", "children")):
            for one in self.answer[those]:
                words, place = _at(one)
                return f"the {kind} `{one['name']}`{words}", place
        file, line = self.answer["frames"][0]
        return f"Python's own end ({'/'.join(file.split('/')[-2:])}, line {line})", None

    @property
    def joins(self) -> Call | None:
        """The call of `init_process_group` in which it waits or has failed; or None."""
        call = self.waits_in or self.failed_in
        joins = call and call.name == "init_process_group" and self.met_as
        return call if joins else None

    @property
    def ended(self) -> bool:
        """Whether it ended by itself, as Python ends."""
        return self.fate in (Fate.FINISHED, Fate.RAISED, Fate.EXITED)

    @property
    def went_well(self) -> bool:
        """Whether it ended by itself and without an error."""
        exited_well = self.fate is Fate.EXITED and not self.exitcode and not self.error
        return self.fate is Fate.FINISHED or exited_well

    @property
    def last_call(self) -> Call | None:
        """The call that it began last, or None."""
        return self.calls[-1] if self.calls else None

    @property
    def waits_in(self) -> Call | None:
        """The call that it began and that has not returned, or not ended on its GPU; or None."""
        if self.ended:
            return None
        unreturned = self.last_call if self.last_call and not self.last_call.returned else None
        if unreturned and self.in_cpp:
            unreturned = replace(unreturned, torchs=self.in_cpp.torchs)
        return self.on_gpu or unreturned or self.in_cpp

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
        self.endless = bool(outcome.get("endless"))  # whether a rank printed without end
        self.debug = outcome.get("debug", "")  # the ranks' TORCH_DISTRIBUTED_DEBUG
        self.launcher_error = outcome.get("error") or outcome.get("stopped")
        self.ranks = [
            Witness(rank, rank.index in stopped, rank.index in gone, bool(self.over))
            for rank in run.ranks
        ]
        self._forget_what_all_deal_with()

    def _forget_what_all_deal_with(self) -> None:
        """An error that all ranks have caught in the same place, and go on from, is no cause."""
        caught = [rank.handling for rank in self.ranks]
        alike = {(each.error.kind, each.error.place, each.goes_on) for each in caught if each}
        if all(caught) and len(alike) == 1 and not caught[0].goes_on:
            for rank in self.ranks:
                if rank.error is rank.handling.error:
                    rank.error = None

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
        if rank.error.lost:  # the others' ends may be recorded later than they closed it
            ended = (o for o in others if o.fate is not Fate.STOPPED or o.error)
            return any(not (o.error and o.error.lost) for o in ended)
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

    @property
    def mismatched(self) -> bool:
        """Whether all ranks wait in calls that cannot match, so that none will ever return."""
        waits = [rank.waits_in for rank in self.ranks]
        if not all(waits):
            return False
        if all(call.is_collective for call in waits):
            one_group = len({call.group for call in waits}) == 1
            unlike = any(not call.returned for _, call in self.differing)
            return unlike or (one_group and len(different(waits)) > 1)
        sides = {call.sends for call in waits if call.peer_number >= 0}
        return len(sides) == 1 and len(cycle(self.ranks)) == len(waits)

    @cached_property
    def differing(self) -> list[tuple[Witness, Call]]:
        """Each rank's call of the first collective on which the ranks disagree.

        Empty if the ranks agree on every call in the log.
        """
        noted = [
            {(call.group, call.number): call for call in rank.calls if call.is_collective}
            for rank in self.ranks
        ]
        for key in sorted(set.intersection(*map(set, noted)), key=lambda key: key[::-1]):
            if len({calls[key].signature for calls in noted}) > 1:
                return [(rank, calls[key]) for rank, calls in zip(self.ranks, noted, strict=True)]
        return []


def different(waits: list[Call]) -> set[tuple]:
    """The calls, each once. Torch's numbers count what C++ calls, but aren't known of all calls."""
    if all(call.torchs for call in waits):
        return {(call.group, *call.torchs, call.peer) for call in waits}
    return {(call.group, call.name, call.number, call.peer) for call in waits}


def cycle(waiting: list[Witness]) -> list[Witness]:
    """Ranks that wait for each other's messages: each for the next, the last for the first."""
    by_name = {f"rank {rank.number}": rank for rank in waiting if rank.waits_in}
    for start in by_name.values():
        path = [start]
        while (following := by_name.get(path[-1].waits_in.peer)) not in (None, *path):
            path.append(following)
        if following is start:
            return path
    return []


def _error(event: dict[str, Any]) -> Error:
    message = event["message"]
    text = f"{event['type']}: {message}" if message else event["type"]
    # A DataLoader's worker process sends its traceback as text.
    quoted = [
        {"file": file, "line": int(line)}
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', message)
    ]
    if quoted:
        text = text.partition("\n")[0] + " " + text.strip().rpartition("\n")[2]
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text):,} characters; the log has all)"
    place = _last_of_students(event["frames"] + quoted)
    behind = tuple(
        (part["text"], _last_of_students(part["frames"])) for part in event.get("behind", ())
    )
    thread = event.get("thread", "")
    return Error(event["at"], text, message, place, event.get("call"), thread, behind)


def _last_of_students(frames: list[dict[str, Any]]) -> Place | None:
    places = [Place(f["file"], f["line"]) for f in frames if settings.is_users(f["file"])]
    return places[-1] if places else None


def _at(one: dict[str, Any]) -> tuple[str, Place | None]:
    """Where a thread is, or else the line that started it; so of a child process."""
    frames = [Place(*frame) for frame in one.get("frames", ())]
    if now := next((place for place in frames if settings.is_users(place.file)), None):
        return f" ({now})", now
    started = Place(*one["started"]) if one["started"] else None
    return f" (started at {started})" * bool(started), started


def _innermost(dump: str) -> Place | None:
    """The innermost line of the student's code in the main thread of faulthandler's first dump."""
    main_thread = re.split(r"\n\n|\nThread |\nCurrent", dump.partition("Current thread")[2])[0]
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', main_thread):
        if settings.is_users(file):  # the innermost frame comes first in such a dump
            return Place(file, int(line))
    return None
