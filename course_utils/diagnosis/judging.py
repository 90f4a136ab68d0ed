"""Why a run failed: the rules, in the order in which they are tried."""

from dataclasses import replace
from typing import Any

from course_utils.diagnosis import failed, waiting
from course_utils.diagnosis.evidence import Evidence
from course_utils.diagnosis.verdict import Verdict
from course_utils.runs import Run

# Each gives its verdict on the evidence, or None where it does not apply.
RULES = (
    failed.forkserver_lost,
    failed.met_elsewhere,
    failed.called_differently,
    failed.raised,
    failed.no_such_rank,
    failed.aborted_at_exit,
    failed.killed_by_signal,
    failed.left_silently,
    failed.exited,
    failed.absent,
    waiting.left_early,
    waiting.hung,
    failed.lost_connection,
    failed.not_run,
)


def judge(run: Run, outcome: dict[str, Any], world_size: int) -> Verdict | None:
    """The verdict on `run`; None if all is well. The arguments are those of `Evidence`."""
    evidence = Evidence(run, outcome, world_size)
    verdict = next((found for rule in RULES if (found := rule(evidence))), None)
    return verdict and replace(verdict, ranks=tuple(run.ranks))
