"""What `check` says about a run that failed: the verdict, and where to look."""

from collections.abc import Callable
from pathlib import Path

from course_utils.diagnosis.calls import noted_calls
from course_utils.diagnosis.verdict import Says
from course_utils.notebook import files
from course_utils.runs import Run

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


def hint(run: Run, path: Path) -> str:
    """What to add to the verdict on a failed run; '' if the verdict says enough."""
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
        for frame in reversed((rank.last("end") or {}).get("frames", [])):
            name, blamed = Path(frame["file"]).name, run.verdict
            if name in files.imported(path) and blamed.kind == "raised" and blamed.file:
                there = Path(blamed.file).name == name
                return "" if there else f"From workers/{name}, line {frame['line']}."
    return ""


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
