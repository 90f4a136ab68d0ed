"""The rules for ranks that failed: they raised, crashed, left, or called something else."""

import re
import signal
from collections import defaultdict

from nbtorchrun.diagnosis.calls import Place, Said
from nbtorchrun.diagnosis.evidence import Evidence, Fate, Witness
from nbtorchrun.diagnosis.verdict import (
    OTHERS_STOPPED,
    Line,
    Verdict,
    excerpt,
    fact,
    hint,
    in_words,
    log_of,
    names,
    quoted,
    verdict,
    who_waited,
)
from nbtorchrun.diagnosis.waiting import SAME_STEPS, left_a_loop
from nbtorchrun.formats import signal_name
from nbtorchrun.runs import Run

# In Python's words on a child process that was spawned without a main guard.
BOOTSTRAPPING = r"finished\s+its\s+bootstrapping\s+phase"
# What to try, for errors whose own words do not say it.
HINTS = {
    r"process group has not been initialized": "Start it first: from nbtorchrun.worker import "
    "init; init()",
    r"only supported with GPUs, no GPUs|requires at least one CUDA|no NVIDIA driver": "NCCL needs "
    'a GPU for each rank. Without GPUs use gloo: dist.init_process_group("gloo"), or init(), '
    "which chooses.",
    r"enforce fail.*rank <|rank.*(less than|out of range|exceed).*world|invalid rank": "torchrun "
    "gives each rank its number and the world size: leave rank= and world_size= out.",
    r"did not receive grad|prior iteration": "A parameter that took no part in the loss never "
    "becomes ready. Use it, freeze it, or wrap with DDP(..., find_unused_parameters=True).",
    r"^(bdb\.)?BdbQuit": "A rank has no terminal, so a debugger cannot stop in it: print what you "
    "want to see, or call the function in a cell, without torchrun.",
    r"EOFError|EOF when reading": "A rank has no terminal to read from: pass what it needs as "
    "an argument.",
    r"can't allocate memory|MemoryError|out of memory": "There is not enough memory: try a "
    "smaller batch, a smaller model or fewer ranks.",
    r"Unable to find address for": "GLOO_SOCKET_IFNAME names a network card that this machine does "
    "not have: unset it, or see with `ip addr` what the cards are called.",
    r"Detected mismatch between collectives": "TORCH_DISTRIBUTED_DEBUG=DETAIL compares every "
    "call of all ranks, and some need not match, as in a pipeline: unset it if this one is right.",
    BOOTSTRAPPING: "A child process runs the script again, from its first line. Put what starts "
    'processes under if __name__ == "__main__":',
    r"No module named": "Is it installed? If it is a worker file, has its cell been run?",
}
SIGNALS = {
    signal.SIGKILL: "Someone killed it, or the system did because memory ran out.",
    signal.SIGSEGV: "Native code crashed; its stack is in the log.",
    signal.SIGABRT: "Native code aborted. With gloo: do all ranks pass tensors of the same size?",
}

DETAIL_KILLS = (
    "TORCH_DISTRIBUTED_DEBUG=DETAIL is set, and with it torch itself crashes over gloo in DDP and "
    "fully_shard, under plain torchrun too: unset it, or set it to INFO."
)


def called_differently(evidence: Evidence) -> Verdict | None:
    """The ranks did not make the same collective call, and nothing failed anywhere else."""
    unlike = evidence.differing
    places = [call.place for _, call in unlike]
    if not unlike or any(rank.error.place not in places for rank in evidence.raised):
        return None
    groups = defaultdict(list)
    for rank, call in unlike:
        groups[call.name, call.shape, call.agreed, call.place].append((rank, call))
    # The smallest group is the odd one out; of groups of equal size, not the one with rank 0.
    by_size = sorted(groups.values(), key=lambda group: (len(group), -group[0][0].number))
    same_name = len({call.name for _, call in unlike}) == 1
    same_tensor = len({call.signature[:3] for _, call in unlike}) == 1
    differ = f"with {_differing_words(unlike)}" if same_tensor else "with tensors that differ"
    what = differ if same_name else "as different functions"
    title = f"the ranks called collective #{unlike[0][1].number} {what}"
    lines = []
    for group in by_size:
        call = group[0][1]
        shape = f" of {call.shape}" if call.shape else ""
        agreed = f", {call.agreed}" if same_tensor and call.agreed else ""
        at = f"{call.name}{shape}{agreed} ({call.place})"
        lines.append(fact(f"{names([rank for rank, _ in group])}: {at}"))
    if left := left_a_loop([rank for rank, _ in unlike]):
        lines += [fact(f"{left[1]}."), hint(SAME_STEPS)]
    lines.append(hint("All ranks must make the same calls in the same order, with the same sizes."))
    blamed, call = by_size[0][0]
    return verdict("mismatch", title, lines, blamed, call.place)


def _differing_words(unlike: list) -> str:
    """The names of what the ranks should have agreed on, as `another src`."""
    said = [dict(word.split("=") for word in call.agreed.split(", ") if word) for _, call in unlike]
    keys = [key for key in said[0] | said[-1] if len({words.get(key) for words in said}) > 1]
    return " and ".join(f"another {key}" for key in keys) or "arguments that differ"


def raised(evidence: Evidence) -> Verdict | None:
    """A rank raised an exception of its own."""
    return _first_error(evidence, evidence.raised) if evidence.raised else None


def _first_error(evidence: Evidence, raised: list[Witness]) -> Verdict:
    """The rank that raised first, its line, and the ranks that raised the same or another error."""
    first = min(raised, key=lambda rank: rank.error.at).error
    same = [rank for rank in raised if rank.error.kind == first.kind]
    error, place = same[0].error, same[0].error.place
    said, *more = error.text.strip().split("\n")
    task = [f"in {same[0].doing}"] if same[0].doing else []
    led = [f"It came from {text.splitlines()[0]} ({at})" for text, at in error.behind if at]
    lines = [*map(fact, more + task), *quoted(place), *map(fact, led[-1:])]
    lines += [fact(evidence.over)] * bool(evidence.over and not evidence.by_hand)
    if error.thread:
        lines.append(fact(f"It ended the thread {error.thread}."))
    lines += [
        fact(f"Rank {rank.number} {rank.handling}.")
        for rank in same
        if rank.handling and rank.handling.error is rank.error
    ]
    for rank in raised:
        if rank not in same:
            at = f" ({rank.error.place})" if rank.error.place else ""
            later, *more = f"{rank.error.text}{at}".split("\n")
            lines += map(fact, [f"After that rank {rank.number} raised {later}", *more])
    lines += [hint(words) for pattern, words in HINTS.items() if re.search(pattern, first.text)]
    if len(raised) < len(evidence.ranks):
        lines.append(OTHERS_STOPPED)
    if same[0].handling and same[0].handling.error is error:  # no traceback was printed
        whose = "Its last output" if len(same) == 1 else f"The last output of rank {same[0].number}"
    else:
        whose = (
            "Its full traceback" if len(same) == 1 else f"The traceback of rank {same[0].number}"
        )
    lines.append(log_of(whose, same[0]))
    return verdict("raised", f"{names(same)} raised {said}", lines, same[0], place)


def spawned_unguarded(run: Run, verdict: Verdict) -> list[Line]:
    """What a child process said that ran the script again, if that is not in the verdict."""
    if not any(re.search(BOOTSTRAPPING, rank.stderr) for rank in run.ranks):
        return []
    said = (
        "A child process said: An attempt has been made to start a new process before the current "
        "process has finished its bootstrapping phase."
    )
    return [] if said in verdict.text else [fact(said), hint(HINTS[BOOTSTRAPPING])]


def no_such_rank(evidence: Evidence) -> Verdict | None:
    """A rank named a rank that does not exist: gloo then crashes, or waits forever."""
    calls = [(rank, call) for rank in evidence.ranks for call in rank.calls]
    beyond = [(rank, call) for rank, call in calls if call.peer_number >= evidence.world_size]
    if not beyond or all(rank.went_well for rank in evidence.ranks):
        return None
    rank, call = beyond[0]
    title = f"rank {rank.number} called {call.at}, but there is no {call.peer}"
    lines = [
        *excerpt(call.place),
        fact(
            f"The last rank is {evidence.world_size - 1}. gloo does not check this number: it "
            "crashes, or waits forever."
        ),
        hint("Is a `% world_size` missing, or should this rank not send or receive here?"),
    ]
    return verdict("killed" if evidence.ended_badly else "hung", title, lines, rank, call.place)


def aborted_at_exit(evidence: Evidence) -> Verdict | None:
    """All ranks had finished the script; one aborted while its Python shut down."""
    aborted = [
        rank
        for rank in evidence.ended_badly
        if rank.exitcode == -signal.SIGABRT and rank.fate is Fate.FINISHED
    ]
    if not aborted or evidence.left_waiting:
        return None
    title = f"{names(aborted)} {_was(aborted)} killed by SIGABRT after the last line of the script"
    lines = [
        fact('The script did all its work. If it ended with "terminate called without an active'),
        fact('exception", that was torch 2.15: it sometimes aborts while Python shuts down, if'),
        fact(
            "something still refers to the process group, as DDP does. On Linux, init() avoids it."
        ),
        log_of("Its last output", aborted[0]),
    ]
    return verdict("killed", title, lines, aborted[0], None)


def killed_by_signal(evidence: Evidence) -> Verdict | None:
    """A signal ended a rank."""
    killed = [rank for rank in evidence.culprits if (rank.exitcode or 0) < 0]
    if not killed:
        return None
    number = -killed[0].exitcode
    same = [rank for rank in killed if rank.exitcode == -number]
    title = f"{names(same)} {_was(same)} killed by {signal_name(number)}"
    lines = [hint(SIGNALS[number])] if number in SIGNALS else []
    if number in (signal.SIGSEGV, signal.SIGABRT) and evidence.debug.upper() == "DETAIL":
        lines.append(hint(DETAIL_KILLS))
    call = same[0].last_call
    return _ended("killed", title, lines, evidence, same[0], call and call.place)


def left_silently(evidence: Evidence) -> Verdict | None:
    """The process of a rank ended in the middle of the script."""
    left = [rank for rank in evidence.culprits if rank.fate is Fate.VANISHED]
    if not left:
        return None
    code, call, by = left[0].exitcode, left[0].last_call, left[0].left_by.get("by", "")
    same = [rank for rank in left if rank.left_by.get("by", "") == by]
    if by == "os._exit":
        how = "called `os._exit` before the end of the script"
        why = "os._exit ends the process at once, without a word to the other ranks."
    elif by:
        how = f"called `{by}`: it became another program, {left[0].left_by['to']}"
        why = "The rest of the script is not run, and the other ranks are not told."
    else:
        how = "ended before the end of the script, and left no record of how"
        why = "Something in it ended the process at once, without a word to the other ranks."
    lines = [fact(f"The exit status was {code}.")] if code else []
    lines += [fact(f"The last call was {call.at}.")] if call else []
    title = f"{names(same)} {how}"
    return _ended("exited", title, [*lines, fact(why)], evidence, left[0], call and call.place)


def forkserver_lost(evidence: Evidence) -> Verdict | None:
    """The process from which warm ranks are forked ended, and its ranks with it."""
    if not evidence.forkserver or all(rank.went_well for rank in evidence.ranks):
        return None
    return Verdict(
        "launcher",
        "the process that warm ranks are forked from (the forkserver) ended "
        f"({evidence.forkserver}), and its ranks with it; the next run starts a new one",
    )


def met_elsewhere(evidence: Evidence) -> Verdict | None:
    """A rank looked for the others at an address that torchrun did not give it."""
    for rank in evidence.ranks:
        address = [rank.met_as[name] for name in ("MASTER_ADDR", "MASTER_PORT") if rank.joins]
        if any(said.differs for said in address):
            at = ":".join(said.value for said in address)
            title = (
                f"rank {rank.number} looked for the other ranks at {at}, where torchrun did not "
                "send it"
            )
            advice = "torchrun sets MASTER_ADDR and MASTER_PORT for each rank: leave them alone."
            return _met(rank, title, address, [hint(advice)])
    return None


def met_under_a_wrong_number(evidence: Evidence) -> Verdict | None:
    """Ranks joined the group under the same number, or wait for ranks that nobody started."""
    joining = [rank for rank in evidence.ranks if rank.joins]
    if len(joining) < evidence.world_size:  # others failed before that, or are on other machines
        return None
    by_number = defaultdict(list)
    for rank in joining:
        by_number[rank.met_as["RANK"].value].append(rank)
    number, same = max(by_number.items(), key=lambda item: len(item[1]))
    size = max((rank.met_as["WORLD_SIZE"].value for rank in joining), key=len)
    expected = range(int(size)) if size.isdigit() else ()
    missing = [each for each in expected if str(each) not in by_number]
    if not missing and len(same) == 1:
        return None
    awaited = f"the group waits for {in_words(missing)}, which nobody started" if missing else ""
    blamed = joining[0]
    if len(same) > 1:
        both = "both" if len(same) == 2 else "all"
        title = f"{names(same)} {both} joined the group as rank {number}"
        lines = [fact(f"{awaited.capitalize()}.")] if awaited else []
        blamed = next((rank for rank in same if rank.met_as["RANK"].differs), blamed)
    else:
        title, lines = awaited, [fact(f"torchrun started {evidence.world_size} ranks.")]
    advice = (
        "torchrun gives each rank its number and the world size: leave rank= and world_size= out, "
        "and RANK and WORLD_SIZE as they are."
    )
    said = [blamed.met_as["RANK"], blamed.met_as["WORLD_SIZE"]]
    return _met(blamed, title, said, [*lines, hint(advice)])


def _met(rank: Witness, title: str, said: list[Said], lines: list[Line]) -> Verdict:
    """The verdict on a rank that joined the group otherwise than torchrun told it."""
    place = rank.joins.place
    for each in (each for each in said if each.differs):
        if each.from_variable:
            place = each.place or place
            set_at = f", set at {each.place}" if each.place else ""
            taken = f"In rank {rank.number} the variable {each.name} is {each.value}{set_at}"
        else:
            taken = f"Rank {rank.number} passes {each.name.lower()}={each.value}"
        lines = [fact(f"{taken}. torchrun had set {each.torchruns}."), *lines]
    kind = "raised" if rank.error else "hung"
    return verdict(kind, title, [*quoted(place), *lines], rank, place)


def absent(evidence: Evidence) -> Verdict | None:
    """A call waited for a rank that did not come, and gave up at its own timeout."""
    if evidence.raised or evidence.ended_badly:
        return None
    for rank in evidence.ranks:
        missing = evidence.absent_for(rank)
        if missing:
            late, call = missing[0], rank.failed_in
            title = (
                f"rank {rank.number} gave up after {rank.error.call['seconds']:.0f} s in "
                f"{call.at}: {names(missing)} never got there"
            )
            placed = [other for other in missing if other.place]
            lines = [
                *(fact(f"rank {other.number} was at {other.place}") for other in placed),
                *excerpt(late.place),
                log_of(f"What rank {rank.number} raised", rank),
            ]
            return verdict("hung", title, lines, late, late.place)
    return None


def exited(evidence: Evidence) -> Verdict | None:
    """A rank ended with an exit status, as `sys.exit(3)` does."""
    if not evidence.culprits:
        return None
    code, exit = evidence.culprits[0].exitcode, evidence.culprits[0].exit
    same = [rank for rank in evidence.culprits if rank.exitcode == code]
    title = f"{names(same)} ended with exit status {code}"
    if exit and exit.message not in ("", str(code)):
        title += f": {exit.message}"
    title, *more = title.split("\n")
    place = exit.place if exit else None
    lines = [*map(fact, more), *quoted(place)]
    return _ended("exited", title, lines, evidence, same[0], place)


def _ended(
    kind: str,
    title: str,
    lines: list[Line],
    evidence: Evidence,
    blamed: Witness,
    place: Place | None,
) -> Verdict:
    """The verdict on a rank that ended without an exception, and the ranks it left waiting."""
    lines = [*lines, *who_waited(evidence.cut_short), log_of("Its last output", blamed)]
    return verdict(kind, title, lines, blamed, place)


def lost_connection(evidence: Evidence) -> Verdict | None:
    """Ranks lost the connection to others, and no rank of this machine is to blame."""
    lost = [rank for rank in evidence.ranks if rank.error]
    return _first_error(evidence, lost) if lost else None


def not_run(evidence: Evidence) -> Verdict | None:
    """Torchrun itself failed: the exception first, since a page may cut the rest; then the rest."""
    if not evidence.launcher_error:
        return None
    error = evidence.launcher_error.strip()
    last_traceback = error.rpartition("Traceback (most recent call last):\n")[2]
    exception = re.search(r"^\S.*", last_traceback, re.MULTILINE)[0]  # what precedes is indented
    rest = [] if exception == error else error.split("\n")
    title = f"torchrun could not run the script: {exception}"
    return Verdict("launcher", title, tuple(map(fact, rest)))


def _was(ranks: list[Witness]) -> str:
    return "was" if len(ranks) == 1 else "were"
