"""What `check` says about a run that failed: the verdict, and where to look."""

from collections.abc import Callable
from pathlib import Path

from course_utils.exercises import Exercise
from nbtorchrun.diagnosis.calls import noted_calls
from nbtorchrun.diagnosis.verdict import Says
from nbtorchrun.runs import Run

TIMEOUT = "stopped at its timeout"  # too slow, which is no deadlock
STACKED = "allgather: invalid tensor size"  # an output (N, n), which NCCL would take
WAITING = ("hangs", "wait", "ranks called collective")  # in the verdict on ranks that wait


def said(printed: str) -> list[str]:
    """The lines of what a rank wrote."""
    return printed.removesuffix("\n").split("\n") if printed else []


def verdict(run: Run) -> str:
    """A run's verdict, without the lines that are not for a student of `check`."""
    found = run.verdict
    # A student of `check` has no logs and no options.
    theirs = [line for line in found.lines if line.says not in (Says.LOG, Says.OPTION)]
    lines = [found.title, *found.written(theirs)]
    if len(theirs) < len(found.lines) and found.kind in ("killed", "exited") and found.ranks:
        lines += [f"  it said: {line}" for line in said(run.ranks[found.rank].stderr)[-2:]]
    return "\n".join(lines)


def hint(run: Run) -> str:
    """The question for the verdict on a failed run; '' if the verdict says enough."""
    nproc = len(run.ranks)
    if STACKED in run.verdict.title:
        return "gloo fills one dimension: an output of N * n rows. `unflatten` it afterwards."
    for rank in run.ranks:
        for call in noted_calls(rank):
            peer = call.peer.removeprefix("rank ")
            if peer.isdigit() and int(peer) >= nproc:
                where = f" ({call.place})" if call.place else ""
                return (
                    f"Rank {rank.number} calls {call.name} with rank {peer}{where}, but there is "
                    f"no rank {peer}: the ranks are 0 to {nproc - 1}."
                )
    return ""


def called_from(run: Run, students: list[str]) -> str:
    """The student's line that called what raised elsewhere; '' if none did.

    Args:
        run: the run.
        students: the names of the files that the student may have written.
    """
    blamed = run.verdict
    for rank in run.ranks:
        for frame in reversed((rank.last("end") or {}).get("frames", [])):
            name = Path(frame["file"]).name
            if name in students and blamed.kind == "raised" and blamed.file:
                there = Path(blamed.file).name == name
                return "" if there else f"From workers/{name}, line {frame['line']}."
    return ""


def hint_of(exercise: Exercise, ranks: int, message: str) -> str:
    """The question that an exercise has for a verdict; '' if it has none."""
    fitting = [hint for part, hint in exercise.hints.items() if part in message]
    if TIMEOUT in message:
        fitting.append("Which loop never ends?")
    fitting.append(exercise.alone if ranks == 1 else "")
    fitting.append(lonely(exercise.lonely)(ranks, message))
    fitting.append(of_backward(ranks, message))
    return next(filter(None, fitting), "")


def of_backward(ranks: int, message: str) -> str:
    """A hint for `probe_each`, where autograd refused what a Function's backward returned."""
    signs = ("invalid gradient", "number of gradients", "Variable or None", "isFloatingType(grad")
    said = "backward returns one thing for each argument of forward: a tensor like it, or None."
    return said * any(sign in message for sign in signs)


def lonely(question: str) -> Callable[[int, str], str]:
    """A hint for `probe_each`: the question, where ranks waited for one that did not come."""
    return lambda _, message: (
        question * (TIMEOUT not in message and any(sign in message for sign in WAITING))
    )
