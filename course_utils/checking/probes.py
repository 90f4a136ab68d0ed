"""Runs the cases of an exercise, which call the student's functions, on several ranks."""

from pathlib import Path
from typing import Any

from course_utils import files
from course_utils.checking import calls, failures
from course_utils.checking.compare import Wrong, count
from course_utils.exercises import Exercise
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Rank

CASES = Path(__file__).parent / "on_ranks" / "cases.py"
STALL = 5  # seconds in which no rank may compute


def run(exercise: Exercise) -> None:
    """Run the cases of an exercise on each of its numbers of ranks.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the answer is wrong.
    """
    students = [exercise.file, *files.imported(exercise.path)]
    files.write_missing(*students)
    for ranks in exercise.ranks:
        try:
            _run(exercise, ranks, students)
        except Wrong as wrong:
            hint = wrong.hint or failures.hint_of(exercise, ranks, wrong.message)
            raise Wrong(wrong.message, hint) from None


def _run(exercise: Exercise, nproc: int, students: list[str]) -> None:
    """Run the cases on that many ranks; raises as `run` does."""
    options = Options(nproc, exercise.seconds, STALL, show=False)
    run = launch_path(CASES, [str(exercise.path)], options)
    calls.printed[:] = [
        f"rank {r.number}: {line}" if nproc > 1 else line
        for r in run.ranks
        for line in failures.said(r.stdout)
    ]
    ranks = count(nproc, "rank")
    findings = [
        {"rank": rank.number, **event["data"]}
        for rank in run.ranks
        for event in rank.events()
        if event["kind"] == "finding"
    ]
    wrong = [finding for finding in findings if "wrong" in finding]
    first = min(wrong, key=lambda finding: (finding["case"], finding["rank"]), default=None)
    if first and (run.ok or _came_to(first["case"], run.ranks, findings)):
        raise Wrong(first["wrong"], first["hint"])
    if not run.ok:
        # Stubs raise it bare; PyTorch raises it too, with a message.
        if run.verdict.error == "NotImplementedError":
            raise NotImplementedError
        said = f"{ranks}: {failures.verdict(run)}\n{failures.called_from(run, students)}"
        raise Wrong(said.rstrip("\n"), failures.hint(run))
    if any((rank.last("end") or {}).get("how") != "finished" for rank in run.ranks):
        ended = "your file ended the script before the check was done"
        raise Wrong(f"{ranks}: {ended}", "Is there an exit() in it?")


def _came_to(case: int, ranks: list[Rank], findings: list[dict[str, Any]]) -> bool:
    """Whether every rank came to the end of a case; a wrong value may say that one was missing."""
    last = {finding["rank"]: finding["case"] for finding in findings if "case" in finding}
    return all(last.get(rank.number, -1) >= case for rank in ranks)
