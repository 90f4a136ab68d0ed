"""Runs a script of `exercises/probes`, which calls the student's worker file, on several ranks."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from course_utils.checking import calls, failures
from course_utils.checking.compare import Wrong, count
from course_utils.checking.registry import EXERCISES
from course_utils.launcher.options import Options
from course_utils.launcher.running import launch_path
from course_utils.notebook import files

TIMEOUT, STALL = 60, 5  # seconds that a run may take, and that no rank may compute in


def probe(file: str | Path, nproc: int, *arguments: Any) -> list[dict[str, Any]]:
    """Run a script that calls the student's worker file, and return its findings.

    Args:
        file: its name in `exercises/probes`; it imports the student's file.
        nproc: number of ranks.
        *arguments: passed to the script.

    Returns:
        What the script passed to `findings.report`, rank by rank, each with its `rank`.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the script found something wrong in a `findings.judging` block: its first case.
        Wrong: the run failed, with the verdict as its message; or it was ended too early.
    """
    path = EXERCISES / "probes" / file
    files.write_missing(*files.imported(path))
    run = launch_path(path, map(str, arguments), Options(nproc, TIMEOUT, STALL, show=False))
    calls.printed[:] = [
        f"rank {r.number}: {line}" for r in run.ranks for line in failures.said(r.stdout)
    ]
    ranks = count(nproc, "rank")
    findings = [
        {"rank": rank.number, **event["data"]}
        for rank in run.ranks
        for event in rank.events()
        if event["kind"] == "finding"
    ]
    if wrong := [finding for finding in findings if "wrong" in finding]:
        first = min(wrong, key=lambda finding: (finding["number"], finding["rank"]))
        raise Wrong(first["wrong"], first["hint"])
    if not run.ok:
        # Stubs raise it bare; PyTorch raises it too, with a message.
        if run.verdict.error == "NotImplementedError":
            raise NotImplementedError
        raise Wrong(f"{ranks}: {failures.verdict(run)}", failures.hint(run, path))
    if any((rank.last("end") or {}).get("how") != "finished" for rank in run.ranks):
        ended = "your file ended the script before the check was done"
        raise Wrong(f"{ranks}: {ended}", "Is there an exit() in it?")
    return findings


def probe_each(
    file: str,
    numbers: Iterable[int],
    *arguments: Any,
    hint: Callable[[int, str], str] = lambda ranks, message: "",
) -> None:
    """Run a probe on each number of ranks; `hint(ranks, message)` serves where it gives no hint."""
    for ranks in numbers:
        try:
            probe(file, ranks, *arguments)
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.hint or hint(ranks, wrong.message)) from None
