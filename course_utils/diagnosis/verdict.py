"""Why a run failed: which rank, which line of the student's script, and what to try."""

import re
import signal
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from course_utils.diagnosis import evidence
from course_utils.diagnosis.evidence import Call, Place, Witness
from course_utils.runs import Rank, Run

# What to try, for errors whose own words do not say it.
HINTS = {
    r"process group has not been initialized": "Start it first: from course_utils.worker import "
    "init; init()",
    r"only supported with GPUs, no GPUs|requires at least one CUDA|no NVIDIA driver": "NCCL needs "
    'a GPU for each rank. Without them take gloo: dist.init_process_group("gloo"), or init(), '
    "which chooses.",
    r"enforce fail.*rank <|rank.*(less than|out of range|exceed).*world|invalid rank": "torchrun "
    "gives each rank its number and the world size: leave rank= and world_size= out.",
    r"did not receive grad|prior iteration": "A parameter that took no part in the loss never "
    "becomes ready. Use it, freeze it, or wrap with DDP(..., find_unused_parameters=True).",
    r"EOFError|EOF when reading": "A rank has no terminal to read from: pass what it needs as "
    "an argument.",
    r"can't allocate memory|MemoryError|out of memory": "There is not enough memory: take a "
    "smaller batch or model, or fewer ranks.",
    r"No module named": "Is it installed, or is it a worker file whose cell was not run?",
}
SIGNALS = {
    signal.SIGKILL: "Somebody killed it, or the system did because memory ran out.",
    signal.SIGSEGV: "Native code crashed; its stack is in the log.",
    signal.SIGABRT: "Native code gave up. With gloo: do all ranks bring tensors of one size?",
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


def judge(run: Run, outcome: dict[str, Any]) -> Verdict | None:
    """The verdict on `run`; None if all is well.

    Args:
        run: the run, with the exit codes of its ranks.
        outcome: the agent's reply; where the launcher stopped the run `"over"` says why, and
            `"stopped ranks"` which of them a signal had stopped.
    """
    verdict = _cause(run, outcome)
    return verdict and replace(verdict, ranks=tuple(run.ranks))


def _cause(run: Run, outcome: dict[str, Any]) -> Verdict | None:
    """The verdict in words."""
    ranks = evidence.gather(run, outcome.get("stopped ranks", set()))
    causes = [each for each in ranks if each.error and not each.error.is_consequence]
    unlike = evidence.differing(ranks)
    if unlike and all(each.error.place in [call.place for _, call in unlike] for each in causes):
        return _mismatch(unlike)
    if causes:
        return _raised(run, causes)
    if over := outcome.get("over"):
        alone = [each for each in ranks if not each.how]
        deserted = 0 < len(alone) < len(ranks) and not _cycle(alone)
        return _left_early(run, ranks, alone) if deserted else _hung(ranks, over)
    if left := _left_by_themselves(ranks):
        alone = [each for each in ranks if each not in left and not _went_well(each)]
        if alone and all(each.how == "finished" for each in left):
            return _left_early(run, ranks, alone)  # gloo may abort at the exit of a rank
        return _left(run, ranks, left)
    if waiting := [each for each in ranks if each.error]:
        return _left_early(run, ranks, waiting)
    if error := outcome.get("error") or outcome.get("stopped"):
        return _not_run(error.strip())
    return None


def _not_run(error: str) -> Verdict:
    """Torchrun itself failed: the exception first, for a page may show no more; then the rest."""
    last_traceback = error.rpartition("Traceback (most recent call last):\n")[2]
    exception = re.search(r"^\S.*", last_traceback, re.MULTILINE)[0]  # all before it is indented
    rest = "" if exception == error else "\n" + textwrap.indent(error, "  ")
    return Verdict("launcher", f"torchrun could not run the script: {exception}{rest}")


def _raised(run: Run, raised: list[Witness]) -> Verdict:
    """The first of the ranks that raised, its line, and who raised the same or something else."""
    first = min(raised, key=lambda each: each.error.at).error
    same = [each for each in raised if each.error.kind == first.kind]
    place = same[0].error.place
    said = same[0].error.text.strip().replace("\n", "\n  ")
    lines = [f"{_names(same)} raised {said}"]
    if place:
        lines += [f"  {place}", *place.excerpt()]
    for each in raised:
        if each not in same:
            at = f" ({each.error.place})" if each.error.place else ""
            lines.append(f"  After that rank {each.number} raised {each.error.text}{at}")
    lines += [f"  {hint}" for pattern, hint in HINTS.items() if re.search(pattern, first.text)]
    if len(raised) < len(run.ranks):
        lines.append("  The other ranks were ended because of it.")
    lines.append(f"  Its full traceback: {_log(run, same[0].number)}")
    return _verdict("raised", lines, same[0].number, place)


def _mismatch(unlike: list[tuple[Witness, Call]]) -> Verdict:
    """A collective that the ranks did not call alike: what each of them brought."""
    brought = defaultdict(list)
    for each, call in unlike:
        brought[call.name, call.shape, call.place].append((each, call))
    # The odd one out; where they are equal in number, not the group of rank 0.
    groups = sorted(brought.values(), key=lambda group: (len(group), -group[0][0].number))
    kinds = {call.name for _, call in unlike}
    what = "tensors that differ" if len(kinds) == 1 else "different functions"
    lines = [f"the ranks called collective #{unlike[0][1].number} with {what}"]
    for group in groups:
        call = group[0][1]
        shape = f" of {call.shape}" if call.shape else ""
        lines.append(f"  {_names([each for each, _ in group])}: {call.name}{shape} ({call.place})")
    lines.append("  All ranks must make the same calls in the same order, with the same sizes.")
    blamed, call = groups[0][0]
    return _verdict("mismatch", lines, blamed.number, call.place)


def _hung(ranks: list[Witness], over: str) -> Verdict:
    """A run that the launcher stopped: who waits where, and for whom."""
    waiting = [each for each in ranks if each.waits_in and not each.how]
    absent = [each for each in ranks if not each.waits_in and not each.how]
    lines = [over]
    for each in ranks:
        lines.append(f"  rank {each.number} {_doing(each)}")
    blamed = None
    if cycle := _cycle(waiting):
        lines.append("  Each waits for the next: " + " -> ".join(f"rank {n}" for n in cycle))
        lines.append("  Let one of them receive first, or use isend and irecv.")
        blamed = next(each for each in waiting if each.number == cycle[0])
    elif len({(w.waits_in.name, w.waits_in.number, w.waits_in.peer) for w in waiting}) > 1:
        blamed = _odd_one_out(waiting)
        lines.append("  They do not wait for the same call, so none of them can return.")
    elif waiting and absent:
        awaited = {each.waits_in.peer for each in waiting}
        blamed = next((each for each in absent if f"rank {each.number}" in awaited), absent[0])
        lines.append(f"  {_names(absent)} never came to where the others wait.")
    elif absent:
        blamed = absent[0]
    lines.append("  If the ranks only need more time, give them some: timeout=..., stall=...")
    place = blamed and _place(blamed)
    if place:
        lines[-1:-1] = place.excerpt()
    return _verdict("hung", lines, blamed and blamed.number, place)


def _doing(each: Witness) -> str:
    """Where a rank is, in words."""
    if each.how:
        return "had ended"
    if each.stopped:
        return "was stopped by a signal (SIGSTOP)" + (f" at {each.stack}" if each.stack else "")
    if each.waits_in:
        return f"waits in {each.waits_in.at}"
    return f"is at {each.stack}" if each.stack else "has not come to a line of the script"


def _place(each: Witness) -> Place | None:
    """Where a rank waited: when another's end ended it, or when the run was stopped."""
    if each.error:
        return each.error.place
    if each.waits_in and each.waits_in.place:
        return each.waits_in.place
    return each.stack or (each.thrown_out_of.place if each.thrown_out_of else None)


def _cycle(waiting: list[Witness]) -> list[int] | None:
    """Ranks that wait for a message of the next, round to the first; None if there are none."""
    waits_for = {
        each.number: int(peer.removeprefix("rank "))
        for each in waiting
        if each.waits_in and (peer := each.waits_in.peer).startswith("rank ")
    }
    for start in waits_for:
        path = [start]
        while (following := waits_for.get(path[-1])) is not None:
            if following == start:
                return [*path, start]
            if following in path:
                break
            path.append(following)
    return None


def _odd_one_out(waiting: list[Witness]) -> Witness:
    """The rank whose call the fewest others wait in; of several the one that is furthest behind."""
    peers = defaultdict(list)
    for each in waiting:
        peers[each.waits_in.name, each.waits_in.number].append(each)
    return min(peers.values(), key=lambda group: (len(group), group[0].waits_in.number))[0]


def _left_by_themselves(ranks: list[Witness]) -> list[Witness]:
    """The ranks that ended badly without an exception, but not by the SIGTERM torchrun sends."""
    left = [each for each in ranks if each.exitcode and not each.error]
    return [each for each in left if each.exitcode != -signal.SIGTERM] or left


def _went_well(each: Witness) -> bool:
    """Whether a rank came to an end of its own, and a good one."""
    return each.exitcode == 0 or each.how == "finished"


def _left(run: Run, ranks: list[Witness], left: list[Witness]) -> Verdict:
    """A rank that ended by an exit status or by a signal."""
    first = left[0]
    same = [each for each in left if each.exitcode == first.exitcode]
    place = first.calls[-1].place if first.calls else None
    if first.exitcode < 0:
        number = signal.Signals(-first.exitcode)
        lines = [f"{_names(same)} {_was(same)} killed by {number.name}"]
        lines += [f"  {SIGNALS[number]}"] if number in SIGNALS else []
        kind = "killed"
    else:
        lines = [f"{_names(same)} ended with exit status {first.exitcode}"]
        kind = "exited"
    lines += _who_waited([each for each in ranks if each not in left and not _went_well(each)])
    lines.append(f"  What it said last: {_log(run, first.number)}")
    return _verdict(kind, lines, first.number, place if kind == "killed" else None)


def _left_early(run: Run, ranks: list[Witness], waiting: list[Witness]) -> Verdict:
    """Ranks that failed only because others were gone, and those, which ended well or silently."""
    others = [each for each in ranks if each not in waiting]
    gone = [each for each in others if _went_well(each)]
    gone = gone or [each for each in others if each.exitcode is None]
    if not gone:
        return _raised(run, waiting)
    quiet = [each for each in gone if not each.how]
    early = quiet or gone
    how = "ended in mid-script, with exit status 0," if quiet else "came to the end of the script"
    lines = [f"{_names(early)} {how} while others still waited for it"]
    lines += _who_waited([each for each in ranks if each not in gone])
    lines.append("  Do all ranks have the same number of batches, and make the same calls?")
    return _verdict("exited", lines, early[0].number, _place(waiting[0]))


def _who_waited(ranks: list[Witness]) -> list[str]:
    """The ranks that another's end left alone, and where."""
    lines = []
    for each in ranks:
        if place := _place(each):
            waited = each.error or each.waits_in or each.thrown_out_of
            lines.append(f"  {_names([each])} still {'waited' if waited else 'was'} at {place}")
    return lines


def _verdict(kind: str, lines: list[str], rank: int | None, place: Place | None) -> Verdict:
    file, line = (place.file, place.line) if place else (None, None)
    return Verdict(kind, "\n".join(lines), rank, file, line)


def _names(ranks: list[Witness]) -> str:
    numbers = [str(each.number) for each in ranks]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"


def _was(ranks: list[Witness]) -> str:
    return "was" if len(ranks) == 1 else "were"


def _log(run: Run, number: int) -> str:
    """Where a rank's log is, as an expression for the notebook: a path would differ every run."""
    index = next(rank.index for rank in run.ranks if rank.number == number)
    return f'{run.name}.dir / "rank_{index}/stderr.log"'
