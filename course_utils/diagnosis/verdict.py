"""Why a run failed: which rank, which line of the student's script, and what to try.

`RULES`, at the end of the file, is the order in which the causes are tried. Each rule looks at the
evidence and gives its verdict, or None where it does not apply.
"""

import re
import signal
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from course_utils.diagnosis.evidence import Call, Evidence, Place, Witness
from course_utils.runs import Rank, Run

# What to try, for errors whose own words do not say it.
HINTS = {
    r"process group has not been initialized": "Start it first: from course_utils.worker import "
    "init; init()",
    r"only supported with GPUs, no GPUs|requires at least one CUDA|no NVIDIA driver": "NCCL needs "
    'a GPU for each rank. Without GPUs use gloo: dist.init_process_group("gloo"), or init(), '
    "which chooses.",
    r"enforce fail.*rank <|rank.*(less than|out of range|exceed).*world|invalid rank": "torchrun "
    "gives each rank its number and the world size: leave rank= and world_size= out.",
    r"did not receive grad|prior iteration": "A parameter that took no part in the loss never "
    "becomes ready. Use it, freeze it, or wrap with DDP(..., find_unused_parameters=True).",
    r"EOFError|EOF when reading": "A rank has no terminal to read from: pass what it needs as "
    "an argument.",
    r"can't allocate memory|MemoryError|out of memory": "There is not enough memory: try a "
    "smaller batch or model, or fewer ranks.",
    r"No module named": "Is it installed, or is it a worker file whose cell was not run?",
}
SIGNALS = {
    signal.SIGKILL: "Somebody killed it, or the system did because memory ran out.",
    signal.SIGSEGV: "Native code crashed; its stack is in the log.",
    signal.SIGABRT: "Native code gave up. With gloo: do all ranks pass tensors of the same size?",
}


@dataclass(frozen=True)
class Verdict:
    """Why a run failed.

    Attributes:
        kind: raised, exited, killed, hung, mismatch or launcher.
        text: all that is said to the student.
        rank: the rank to blame; None where it is not one rank.
        file: the student's file with the place to look at, where there is one.
        line: its line there.
        ranks: the ranks of the run, with what they left behind.
    """

    kind: str
    text: str
    rank: int | None = None
    file: str | None = None
    line: int | None = None
    ranks: tuple[Rank, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.text


def judge(run: Run, outcome: dict[str, Any], world_size: int) -> Verdict | None:
    """The verdict on `run`; None if all is well. The arguments are those of `Evidence`."""
    evidence = Evidence(run, outcome, world_size)
    verdict = next((found for rule in RULES if (found := rule(evidence))), None)
    return verdict and replace(verdict, ranks=tuple(run.ranks))


def _called_differently(evidence: Evidence) -> Verdict | None:
    """The ranks did not make the same collective call, and nothing failed anywhere else."""
    unlike = evidence.differing
    places = [call.place for _, call in unlike]
    if not unlike or any(rank.error.place not in places for rank in evidence.raised):
        return None
    groups = defaultdict(list)
    for rank, call in unlike:
        groups[call.name, call.shape, call.place].append((rank, call))
    # The odd one out first; where all are equal in number, not the group of rank 0.
    by_size = sorted(groups.values(), key=lambda group: (len(group), -group[0][0].number))
    same_name = len({call.name for _, call in unlike}) == 1
    what = "tensors that differ" if same_name else "different functions"
    lines = [f"the ranks called collective #{unlike[0][1].number} with {what}"]
    for group in by_size:
        call = group[0][1]
        shape = f" of {call.shape}" if call.shape else ""
        lines.append(f"  {_names([rank for rank, _ in group])}: {call.name}{shape} ({call.place})")
    lines.append("  All ranks must make the same calls in the same order, with the same sizes.")
    blamed, call = by_size[0][0]
    return _verdict("mismatch", lines, blamed, call.place)


def _raised(evidence: Evidence) -> Verdict | None:
    """A rank raised an exception of its own."""
    return _first_error(evidence, evidence.raised) if evidence.raised else None


def _first_error(evidence: Evidence, raised: list[Witness]) -> Verdict:
    """The first of the ranks that raised, its line, and who raised the same or something else."""
    first = min(raised, key=lambda rank: rank.error.at).error
    same = [rank for rank in raised if rank.error.kind == first.kind]
    error, place = same[0].error, same[0].error.place
    said = error.text.strip().replace("\n", "\n  ")
    lines = [f"{_names(same)} raised {said}", *_quoted(place)]
    for rank in raised:
        if rank not in same:
            at = f" ({rank.error.place})" if rank.error.place else ""
            lines.append(f"  After that rank {rank.number} raised {rank.error.text}{at}")
    lines += [f"  {hint}" for pattern, hint in HINTS.items() if re.search(pattern, first.text)]
    if len(raised) < len(evidence.ranks):
        lines.append("  The other ranks were ended because of it.")
    whose = "Its full traceback" if len(same) == 1 else f"The traceback of rank {same[0].number}"
    lines.append(f"  {whose}: {_log(evidence.run, same[0])}")
    return _verdict("raised", lines, same[0], place)


def _no_such_rank(evidence: Evidence) -> Verdict | None:
    """A rank named another that does not exist: gloo then crashes, or waits forever."""
    calls = [(rank, call) for rank in evidence.ranks for call in rank.calls or () if call.peer]
    beyond = [(rank, call) for rank, call in calls if call.peer_number >= evidence.world_size]
    if not beyond or all(rank.went_well for rank in evidence.ranks):
        return None
    rank, call = beyond[0]
    lines = [
        f"rank {rank.number} called {call.at}, but there is no {call.peer}",
        *_excerpt(call.place),
        f"  The last rank is {evidence.world_size - 1}. gloo does not check this number: it "
        "crashes, or waits forever.",
        "  Is a `% world_size` missing, or should this rank leave the message out?",
    ]
    return _verdict("hung" if evidence.over else "killed", lines, rank, call.place)


def _aborted_at_exit(evidence: Evidence) -> Verdict | None:
    """All ranks had finished the script; one aborted while its Python shut down."""
    aborted = [
        rank
        for rank in evidence.ended_badly
        if rank.exitcode == -signal.SIGABRT and rank.how == "finished"
    ]
    if not aborted or evidence.left_waiting:
        return None
    lines = [
        f"{_names(aborted)} {_was(aborted)} killed by SIGABRT after the last line of the script",
        "  The script did all its work. torch 2.15 sometimes aborts while Python shuts down after",
        '  training with its own DDP: "terminate called without an active exception".',
        "  Start the process group with init() from course_utils.worker, which avoids it.",
        f"  Its last output: {_log(evidence.run, aborted[0])}",
    ]
    return _verdict("killed", lines, aborted[0], None)


def _ended_badly(evidence: Evidence) -> Verdict | None:
    """A rank ended by a signal, by an exit status, or by `os._exit`."""
    bad = evidence.ended_badly
    if not bad or (evidence.left_waiting and all(rank.how == "finished" for rank in bad)):
        return None  # gloo may abort when a rank ends early: that it did is the cause
    first = bad[0]
    same = [r for r in bad if (r.exitcode, r.left) == (first.exitcode, first.left)]
    kind, place = "exited", first.last_call and first.last_call.place
    if (first.exitcode or 0) < 0:
        kind, number = "killed", signal.Signals(-first.exitcode)
        lines = [f"{_names(same)} {_was(same)} killed by {number.name}"]
        lines += [f"  {SIGNALS[number]}"] if number in SIGNALS else []
    elif first.exit:
        place, said = first.exit.place, first.exit.message
        words = "" if said in ("", str(first.exitcode)) else f": {said}"
        lines = [f"{_names(same)} ended with exit status {first.exitcode}{words}", *_quoted(place)]
    elif first.left:
        lines = [f"{_names(same)} left by `os._exit`, before the end of the script"]
        lines += [f"  The exit status was {first.exitcode}."] if first.exitcode else []
        lines += [f"  The last call was {first.last_call.at}."] if first.last_call else []
        lines.append("  os._exit ends the process at once, and tells the other ranks nothing.")
    else:
        lines = [f"{_names(same)} ended with exit status {first.exitcode}"]
    lines += _who_waited([rank for rank in evidence.cut_short if not rank.left])
    lines.append(f"  Its last output: {_log(evidence.run, first)}")
    return _verdict(kind, lines, first, place)


def _left_early(evidence: Evidence) -> Verdict | None:
    """Some ranks came to their end while others waited for them."""
    early = [rank for rank in evidence.ranks if rank.went_well]
    waiting = [rank for rank in evidence.ranks if not rank.went_well]
    if evidence.over:
        applies = early and not _cycle(waiting)
    else:
        applies = early and (evidence.ended_badly or any(rank.error for rank in waiting))
    if not applies or not waiting:
        return None
    first = early[0]
    how = "reached the end of the script" if first.how == "finished" else "ended"
    them = "it" if len(early) == 1 else "them"
    lines = [f"{_names(early)} {how} while other ranks were still waiting for {them}"]
    lines += _quoted(first.exit.place) if first.exit else []
    lines += _who_waited(waiting)
    if dropped := _dropped_message(evidence):
        lines += _ask_for_work(*dropped)
    else:
        lines.append("  Do all ranks have the same number of batches, and make the same calls?")
    return _verdict("exited", lines, first, waiting[0].place)


def _lost_connection(evidence: Evidence) -> Verdict | None:
    """Ranks lost the connection to others, and no rank of this machine is to blame."""
    lost = [rank for rank in evidence.ranks if rank.error]
    return _first_error(evidence, lost) if lost else None


def _hung(evidence: Evidence) -> Verdict | None:
    """The launcher stopped the run: who waits where, and for whom."""
    if not evidence.over:
        return None
    waiting = [rank for rank in evidence.ranks if rank.waits_in and not rank.how]
    absent = [rank for rank in evidence.ranks if not rank.waits_in and not rank.how]
    lines = [evidence.over]
    lines += [f"  rank {rank.number} {_doing(rank)}" for rank in evidence.ranks]
    blamed = place = None
    if dropped := _dropped_message(evidence):
        blamed, place = dropped[0], dropped[1].place
        lines += _ask_for_work(*dropped)
    elif cycle := _cycle(waiting):
        blamed = cycle[0]
        path = " -> ".join(f"rank {rank.number}" for rank in [*cycle, blamed])
        lines.append(f"  Each waits for the next: {path}")
        lines.append("  Let one of them receive first, or use isend and irecv.")
    elif len({(r.waits_in.name, r.waits_in.number, r.waits_in.peer) for r in waiting}) > 1:
        blamed = _odd_one_out(waiting)
        lines.append("  They do not wait for the same call, so none of them can return.")
    elif absent:
        awaited = {rank.waits_in.peer for rank in waiting}
        blamed = next((rank for rank in absent if f"rank {rank.number}" in awaited), absent[0])
        if waiting:
            lines.append(f"  {_names(absent)} never got to where the others are waiting.")
    place = place or (blamed and blamed.place)
    lines += place.excerpt() if place else []
    lines.append("  If the ranks only need more time, give them some: timeout=..., stall=...")
    return _verdict("hung", lines, blamed, place)


def _not_run(evidence: Evidence) -> Verdict | None:
    """Torchrun itself failed: the exception first, for a page may show no more; then the rest."""
    if not evidence.launcher_error:
        return None
    error = evidence.launcher_error.strip()
    last_traceback = error.rpartition("Traceback (most recent call last):\n")[2]
    exception = re.search(r"^\S.*", last_traceback, re.MULTILINE)[0]  # all before it is indented
    rest = "" if exception == error else "\n" + textwrap.indent(error, "  ")
    return Verdict("launcher", f"torchrun could not run the script: {exception}{rest}")


def _doing(rank: Witness) -> str:
    """Where a rank is, in words."""
    if rank.how:
        return "had ended"
    if rank.stopped:
        return "was stopped by a signal (SIGSTOP)" + (f" at {rank.stack}" if rank.stack else "")
    if rank.waits_in:
        return f"waits in {rank.waits_in.at}"
    return f"is at {rank.stack}" if rank.stack else "has not come to a line of the script"


def _cycle(waiting: list[Witness]) -> list[Witness]:
    """Ranks that each wait for a message of the next, and the last for the first; or none."""
    by_name = {f"rank {rank.number}": rank for rank in waiting if rank.waits_in}
    for start in by_name.values():
        path = [start]
        while (following := by_name.get(path[-1].waits_in.peer)) not in (None, *path):
            path.append(following)
        if following is start:
            return path
    return []


def _odd_one_out(waiting: list[Witness]) -> Witness:
    """The rank whose call the fewest others wait in; of several the one that is furthest behind."""
    groups = defaultdict(list)
    for rank in waiting:
        groups[rank.waits_in.name, rank.waits_in.number].append(rank)
    return min(groups.values(), key=lambda group: (len(group), group[0].waits_in.number))[0]


def _dropped_message(evidence: Evidence) -> tuple[Witness, Call] | None:
    """The rank that began to send a message for which another still waits, and its `isend`."""
    for receiver in evidence.ranks:
        call = receiver.last_call
        if receiver.how or not call or not call.peer or call.sends:
            continue
        sender = next((r for r in evidence.ranks if f"rank {r.number}" == call.peer), None)
        to_receiver = f"rank {receiver.number}"
        sent = [c for c in (sender and sender.calls) or () if c.sends and c.peer == to_receiver]
        received = [c for c in receiver.calls[:-1] if c.peer == call.peer and not c.sends]
        if len(sent) > len(received) and sent[-1].name == "isend":
            return sender, sent[-1]
    return None


def _ask_for_work(sender: Witness, call: Call) -> list[str]:
    """What to ask when the message of an `isend` has not arrived."""
    return [
        f"  rank {sender.number} called {call.at}, and its message has not arrived.",
        "  Was the work of every isend kept, and waited for? work = dist.isend(...), then "
        "work.wait(): a message is lost when its work is dropped.",
    ]


def _who_waited(ranks: list[Witness]) -> list[str]:
    """The ranks that another's end left alone, and where."""
    return [
        f"  rank {rank.number} was {'still waiting ' * rank.was_waiting}at {rank.place}"
        for rank in ranks
        if rank.place
    ]


def _verdict(kind: str, lines: list[str], blamed: Witness | None, place: Place | None) -> Verdict:
    file, line = (place.file, place.line) if place else (None, None)
    return Verdict(kind, "\n".join(lines), blamed.number if blamed else None, file, line)


def _quoted(place: Place | None) -> list[str]:
    """A place, and the line there between its neighbours."""
    return [f"  {place}", *place.excerpt()] if place else []


def _excerpt(place: Place | None) -> list[str]:
    return place.excerpt() if place else []


def _names(ranks: list[Witness]) -> str:
    *others, last = [str(rank.number) for rank in ranks]
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def _was(ranks: list[Witness]) -> str:
    return "was" if len(ranks) == 1 else "were"


def _log(run: Run, witness: Witness) -> str:
    """Where a rank's log is, as an expression for the notebook: a path would differ every run."""
    index = next(rank.index for rank in run.ranks if rank.number == witness.number)
    return f'{run.name}.dir / "rank_{index}/stderr.log"'


RULES = (
    _called_differently,
    _raised,
    _no_such_rank,
    _aborted_at_exit,
    _ended_badly,
    _left_early,
    _hung,
    _lost_connection,
    _not_run,
)
