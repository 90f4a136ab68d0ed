"""The rules for runs that stand still: which rank waits for which, and for what."""

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

from nbtorchrun.diagnosis.calls import Call, Place
from nbtorchrun.diagnosis.evidence import Evidence, Fate, Witness, cycle, different
from nbtorchrun.diagnosis.source import left_loop
from nbtorchrun.diagnosis.verdict import (
    Line,
    Says,
    Verdict,
    excerpt,
    fact,
    hint,
    names,
    quoted,
    verdict,
    who_waited,
)

SAME_STEPS = "Do all ranks make the same number of steps, and have the same number of batches?"
LESS_OUTPUT = (
    "Does the loop that prints ever end? Print or report less often, and write what must be kept "
    "to a file of your own."
)
LONG = 2  # seconds without activity that are worth a word when a run was stopped by hand


def lives_on(evidence: Evidence) -> Verdict | None:
    """All ranks have ended their scripts, and something keeps a process alive."""
    alive = [rank for rank in evidence.ranks if rank.kept_alive_by]
    if not evidence.over or not alive or not all(rank.ended for rank in evidence.ranks):
        return None
    what, place = alive[0].kept_alive_by
    finding = f"{names(alive)} {_have(alive)} ended the script, but {what} keeps Python running"
    lines = [Line(Says.RANK, f"rank {rank.number}{where(rank)}") for rank in evidence.ranks]
    advice = (
        "Python waits for threads and child processes, unless they are daemons, and for exit "
        "handlers. Let the script end what it has started."
    )
    kind = "stopped" if evidence.by_hand else "hung"
    lines = [*lines, *excerpt(place), hint(advice)]
    found = verdict(kind, evidence.over, lines, alive[0], place)
    return replace(found, finding=finding)


def left_early(evidence: Evidence) -> Verdict | None:
    """Some ranks ended while others waited for them."""
    early = [rank for rank in evidence.ranks if rank.went_well]
    others = [rank for rank in evidence.ranks if not rank.went_well]
    waited = any(rank.was_waiting for rank in others)
    if evidence.over:  # whoever stops a run by hand while the others work may know that
        applies = early and others and not cycle(others) and (waited or not evidence.by_hand)
    else:  # the others lost their connection, or gloo aborted at the exit of those that left
        applies = early and (evidence.ended_badly or any(rank.error for rank in others))
    if not applies:
        return None
    how = "reached the end of the script" if early[0].fate is Fate.FINISHED else "ended"
    still = f"waiting for {_them(early)}" if waited else "at work"
    title = f"{names(early)} {how} while other ranks were still {still}"
    lines = [fact(evidence.over)] if evidence.over else []
    lines += quoted(early[0].exit.place) if early[0].exit else []
    lines += who_waited(others)
    lines += [fact(f"rank {rank.number}{where(rank)}") for rank in early if rank.kept_alive_by]
    blamed, place = early[0], others[0].place
    if dropped := _dropped_message(evidence.ranks):
        blamed, place = dropped[0], dropped[1].place
        lines += [*_ask_for_work(*dropped), *excerpt(place)]
    else:
        lines.append(hint("Do all ranks have the same number of batches, and make the same calls?"))
    return verdict("exited", title, lines, blamed, place)


@dataclass(frozen=True)
class Cause:
    """Why ranks stand still: the rank to blame, the finding, and what the text says of it."""

    blamed: Witness | None = None
    finding: str = ""
    lines: tuple[Line, ...] = ()
    place: Place | None = None  # where to look, if it is not where the blamed rank is


def hung(evidence: Evidence) -> Verdict | None:
    """The run was stopped, by the launcher or by hand: which rank waits where, and for whom."""
    if not evidence.over:
        return None
    cause = _cause(evidence)
    lines = []
    if evidence.quiet >= LONG:
        quiet = f"for the last {evidence.quiet:.0f} s no rank computed, printed or reported"
        lines.append(fact(quiet))
    lines += [Line(Says.RANK, f"rank {rank.number}{where(rank)}") for rank in evidence.ranks]
    lines += cause.lines
    place = cause.place or (cause.blamed and cause.blamed.place)
    lines += excerpt(place)
    kind, finding = "hung", cause.finding
    if evidence.by_hand:
        kind = "stopped"
        finding = f"{evidence.over}: {finding}" if finding else evidence.over
    else:
        more_time = "If the ranks only need more time, set a longer timeout or stall."
        lines.append(hint(LESS_OUTPUT) if evidence.endless else Line(Says.OPTION, more_time))
    found = verdict(kind, evidence.over, lines, cause.blamed, place)
    return replace(found, finding=finding)


def _cause(evidence: Evidence) -> Cause:
    """Why the ranks of a run that was stopped stand still, if they do."""
    waiting = [rank for rank in evidence.ranks if rank.waits_in]
    absent = [rank for rank in evidence.ranks if not rank.waits_in and not rank.ended]
    awaited = {rank.waits_in.peer for rank in waiting}
    if dropped := _dropped_message(evidence.ranks):
        sender, call = dropped
        finding = f"the message of rank {sender.number}'s isend has not arrived"
        return Cause(sender, finding, tuple(_ask_for_work(*dropped)), place=call.place)
    if circle := cycle(waiting):
        path = " -> ".join(f"rank {rank.number}" for rank in [*circle, circle[0]])
        around = "for each other" if len(circle) == 2 else "in a circle, each for the next"
        finding = f"{names(sorted(circle, key=lambda rank: rank.number))} wait {around}"
        advice = hint("Let one of them receive first, or begin both with batch_isend_irecv.")
        return Cause(circle[0], finding, (fact(f"Each waits for the next: {path}"), advice))
    named = [rank for rank in absent if f"rank {rank.number}" in awaited]
    waits = [rank.waits_in for rank in waiting]
    calls = different(waits)
    # Ranks that wait in calls of different groups may all wait for one that is not there.
    one_group = len({call.group for call in waits}) == 1
    if not named and len(calls) > 1 and (one_group or not absent):
        if left := left_a_loop(waiting):
            lines = Line(Says.AGAIN, f"{left[1]}."), hint(SAME_STEPS)
            return Cause(left[0], left[1], lines)
        unlike = "waiting in different calls, so none of these can return"
        finding = f"the ranks are {unlike}"
        again = Line(Says.AGAIN, f"They are {unlike}.")
        return Cause(_odd_one_out(waiting), finding, (again,))
    if late := named or absent:
        if not waiting:
            return Cause() if evidence.by_hand else Cause(late[0])
        never = Line(Says.AGAIN, f"{names(late)} never got to where the others are waiting.")
        return Cause(late[0], _not_reached(late, waiting, evidence.by_hand), (never,))
    return Cause()


def left_a_loop(waiting: list[Witness]) -> tuple[Witness, str] | None:
    """Ranks that have left a loop which others are still in: one of them, and a sentence."""
    for gone, still in itertools.permutations(waiting, 2):
        for there, here in itertools.product(gone.lines, still.lines):
            line = left_loop(here.file, there.line, here.line) if there.file == here.file else None
            if line:
                leavers = [rank for rank in waiting if there in rank.lines]
                stayers = [rank for rank in waiting if here in rank.lines]
                left = (
                    f"{names(leavers)} {_have(leavers)} left the loop at {Place(here.file, line)}"
                )
                return gone, f"{left}, and {names(stayers)} {_are(stayers)} still in it"
    return None


def _not_reached(late: list[Witness], waiting: list[Witness], by_hand: bool) -> str:
    """The finding that some ranks did not come to the call in which others wait for them."""
    called = {str(rank.waits_in) for rank in waiting}
    together = len(called) == 1 and all(rank.waits_in.is_collective for rank in waiting)
    what = called.pop() if together else "where the others wait"
    not_ = "had not reached" if by_hand else "never reached"  # by hand, it may only be slow
    wait = "waits" if len(waiting) == 1 else "wait"
    return f"{names(late)} {not_} {what}; {names(waiting)} {wait} for {_them(late)}"


def _have(ranks: list[Witness]) -> str:
    return "has" if len(ranks) == 1 else "have"


def _are(ranks: list[Witness]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _them(ranks: list[Witness]) -> str:
    return "it" if len(ranks) == 1 else "them"


def _ask_for_work(sender: Witness, call: Call) -> list[Line]:
    """What to ask if the message of an `isend` has not arrived."""
    return [
        fact(f"rank {sender.number} called {call.at}, and its message has not arrived."),
        hint(
            "Was the work of every isend kept, and waited for? work = dist.isend(...), then "
            "work.wait(): a message is lost when its work is dropped."
        ),
    ]


def where(rank: Witness) -> str:
    """Where a rank is, in words."""
    if rank.ended:
        if alive := rank.kept_alive_by:
            return f" has ended the script, but {alive[0]} keeps Python running"
        return " had ended"
    task = f", in {rank.doing}," * bool(rank.doing)
    if rank.stopped:
        at = f" at {rank.stack}" if rank.stack else ""
        return f"{task} was stopped by a signal (SIGSTOP){at}"
    if rank.waits_in:
        return f"{task} waits in {rank.waits_in.at}"
    if rank.stack:
        return f"{task} is at {rank.stack}"
    last = rank.last_call  # it wrote no stack: it handles or blocks every signal
    return f" was last seen in {last.at}" if last else " has not reached the script yet"


def _odd_one_out(waiting: list[Witness]) -> Witness:
    """The rank in whose call the fewest ranks wait; of several, the one that is furthest behind."""
    groups = defaultdict(list)
    for rank in waiting:
        groups[rank.waits_in.name, rank.waits_in.number].append(rank)
    return min(groups.values(), key=lambda group: (len(group), group[0].waits_in.number))[0]


def _dropped_message(ranks: list[Witness]) -> tuple[Witness, Call] | None:
    """The rank whose message another rank waited for to the end, and its `isend`."""
    for receiver, sender in itertools.permutations(ranks, 2):
        # One that waits for its work comes to its end only when the message is on its way.
        call = receiver.waits_in or (receiver.failed_in if sender.went_well else None)
        if not call or call.sends or call.peer_number != sender.number:
            continue
        sent = [c for c in sender.calls if c.sends and c.peer_number == receiver.number]
        if sent and sent[-1].name == "isend" and sent[-1].number >= call.number:
            return sender, sent[-1]
    return None
