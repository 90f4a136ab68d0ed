"""What `check` says about a run that failed: the verdict, and where to look."""

from collections.abc import Callable
from pathlib import Path

from course_utils.diagnosis.calls import noted_calls
from course_utils.notebook import files
from course_utils.runs import Run

# Lines of a verdict about things that a student of `check` does not have: logs and options.
NOT_THEIRS = (".dir / ", "timeout=")
TIMEOUT = "stopped at its timeout"  # too slow, which is no deadlock
WAITING = ("hangs", "wait", "ranks called collective")  # in the verdict on ranks that wait


def said(printed: str) -> list[str]:
    """The lines of what a rank wrote."""
    return printed.removesuffix("\n").split("\n") if printed else []


def verdict(run: Run) -> str:
    """A run's verdict, without the lines that are not for a student of `check`."""
    lines = str(run.verdict).splitlines()
    kept = [line for line in lines if not any(words in line for words in NOT_THEIRS)]
    if len(kept) < len(lines) and run.verdict.kind in ("killed", "exited") and run.verdict.ranks:
        kept += [f"  it said: {line}" for line in said(run.ranks[run.verdict.rank].stderr)[-2:]]
    return "\n".join(kept)


def hint(run: Run, path: Path) -> str:
    """What to add to the verdict on a failed run; '' if the verdict says enough."""
    nproc = len(run.ranks)
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


def lonely(question: str) -> Callable[[int, str], str]:
    """A hint for `probe_each`: the question, where ranks waited for one that did not come."""
    return lambda _, message: (
        question * (TIMEOUT not in message and any(sign in message for sign in WAITING))
    )
