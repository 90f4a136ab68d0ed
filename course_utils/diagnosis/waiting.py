"""The rules for runs that stand still: which rank waits for which, and for what."""

import itertools
from collections import defaultdict

from course_utils.diagnosis.calls import Call
from course_utils.diagnosis.evidence import Evidence, Witness
from course_utils.diagnosis.verdict import Verdict, excerpt, names, quoted, verdict, who_waited


def left_early(evidence: Evidence) -> Verdict | None:
    """Some ranks ended while others waited for them."""
    early = [rank for rank in evidence.ranks if rank.went_well]
    others = [rank for rank in evidence.ranks if not rank.went_well]
    if evidence.over:
        applies = early and others and not _cycle(others)
    else:  # the others lost their connection, or gloo aborted at the exit of those that left
        applies = early and (evidence.ended_badly or any(rank.error for rank in others))
    if not applies:
        return None
    how = "reached the end of the script" if early[0].how == "finished" else "ended"
    them = "it" if len(early) == 1 else "them"
    waited = any(rank.was_waiting for rank in others)
    still = f"waiting for {them}" if waited else "at work"
    lines = [f"{names(early)} {how} while other ranks were still {still}"]
    lines += [f"  {evidence.over}"] if evidence.over else []
    lines += quoted(early[0].exit.place) if early[0].exit else []
    lines += who_waited(others)
    blamed, place = early[0], others[0].place
    if dropped := _dropped_message(evidence.ranks):
        blamed, place = dropped[0], dropped[1].place
        lines += [*_ask_for_work(*dropped), *excerpt(place)]
    else:
        lines.append("  Do all ranks have the same number of batches, and make the same calls?")
    return verdict("exited", lines, blamed, place)


def hung(evidence: Evidence) -> Verdict | None:
    """The launcher stopped the run: which rank waits where, and for which other rank."""
    if not evidence.over:
        return None
    waiting = [rank for rank in evidence.ranks if rank.waits_in and not rank.how]
    absent = [rank for rank in evidence.ranks if not rank.waits_in and not rank.how]
    awaited = {rank.waits_in.peer for rank in waiting}
    lines = [evidence.over]
    lines += [f"  rank {rank.number}{_where(rank)}" for rank in evidence.ranks]
    blamed = place = None
    if dropped := _dropped_message(evidence.ranks):
        blamed, place = dropped[0], dropped[1].place
        lines += _ask_for_work(*dropped)
    elif circle := _cycle(waiting):
        blamed = circle[0]
        path = " -> ".join(f"rank {rank.number}" for rank in [*circle, blamed])
        lines.append(f"  Each waits for the next: {path}")
        lines.append("  Let one of them receive first, or use isend and irecv.")
    elif late := [rank for rank in absent if f"rank {rank.number}" in awaited]:
        blamed = late[0]
        lines.append(f"  {names(late)} never got to where the others are waiting.")
    elif len({(r.waits_in.name, r.waits_in.number, r.waits_in.peer) for r in waiting}) > 1:
        blamed = _odd_one_out(waiting)
        lines.append("  They are waiting in different calls, so none of these can return.")
    elif absent:
        blamed = absent[0]
        if waiting:
            lines.append(f"  {names(absent)} never got to where the others are waiting.")
    place = place or (blamed and blamed.place)
    lines += excerpt(place)
    lines.append("  If the ranks only need more time, give them some: timeout=..., stall=...")
    return verdict("hung", lines, blamed, place)


def _ask_for_work(sender: Witness, call: Call) -> list[str]:
    """What to ask if the message of an `isend` has not arrived."""
    return [
        f"  rank {sender.number} called {call.at}, and its message has not arrived.",
        "  Was the work of every isend kept, and waited for? work = dist.isend(...), then "
        "work.wait(): a message is lost when its work is dropped.",
    ]


def _where(rank: Witness) -> str:
    """Where a rank is, in words."""
    if rank.how:
        return " had ended"
    task = f", in {rank.doing}," * bool(rank.doing)
    if rank.stopped:
        at = f" at {rank.stack}" if rank.stack else ""
        return f"{task} was stopped by a signal (SIGSTOP){at}"
    if rank.waits_in:
        return f"{task} waits in {rank.waits_in.at}"
    return f"{task} is at {rank.stack}" if rank.stack else " has not reached the script yet"


def _cycle(waiting: list[Witness]) -> list[Witness]:
    """Ranks that wait for each other's messages: each for the next, the last for the first."""
    by_name = {f"rank {rank.number}": rank for rank in waiting if rank.waits_in}
    for start in by_name.values():
        path = [start]
        while (following := by_name.get(path[-1].waits_in.peer)) not in (None, *path):
            path.append(following)
        if following is start:
            return path
    return []


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
