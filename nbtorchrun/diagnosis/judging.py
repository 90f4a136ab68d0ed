"""Why a run failed: the rules, in the order in which they are tried."""

import re
from dataclasses import replace
from typing import Any

from nbtorchrun.diagnosis import failed, waiting
from nbtorchrun.diagnosis.evidence import Evidence, Fate, Witness
from nbtorchrun.diagnosis.verdict import Line, Row, Verdict, fact, whereabouts
from nbtorchrun.runs import (
    Run,
)

RULES = (
    failed.forkserver_lost,
    failed.met_elsewhere,
    failed.met_under_a_wrong_number,
    failed.called_differently,
    failed.raised,
    failed.no_such_rank,
    failed.aborted_at_exit,
    failed.killed_by_signal,
    failed.left_silently,
    failed.exited,
    failed.absent,
    waiting.lives_on,
    waiting.left_early,
    waiting.hung,
    failed.lost_connection,
    failed.not_run,
)
PLURAL = {"waits": "wait", "is": "are", "was": "were", "has": "have"}


def judge(run: Run, outcome: dict[str, Any], world_size: int) -> Verdict | None:
    """The verdict on `run`; None if all is well. The arguments are those of `Evidence`."""
    evidence = Evidence(run, outcome, world_size)
    verdict = next((found for rule in RULES if (found := rule(evidence))), None)
    if verdict is None:
        return None
    if evidence.by_hand and evidence.over not in verdict.text:
        verdict = replace(verdict, lines=(*verdict.lines, fact(evidence.over)))
    more = [*_also_handled(evidence, verdict), *failed.spawned_unguarded(run, verdict)]
    verdict = replace(verdict, lines=(*verdict.lines, *more))
    known = {"run": run.name, "ranks": tuple(run.ranks), "rows": rows(evidence, verdict)}
    return replace(verdict, **known)


def _also_handled(evidence: Evidence, verdict: Verdict) -> list[Line]:
    """The errors that ranks were handling and that the verdict doesn't name, if not all did."""
    handling = {rank.number: rank.handling for rank in evidence.ranks}
    kinds = {(each.error.kind, each.error.place) if each else None for each in handling.values()}
    return [
        fact(f"rank {number} {each}: {each.error.text.splitlines()[0]} ({each.error.place})")
        for number, each in handling.items()
        if each and each.error.place and len(kinds) > 1 and not each.error.lost
        if each.error.text not in verdict.text
    ]


def rows(evidence: Evidence, verdict: Verdict) -> tuple[Row, ...]:
    """What became of each rank, alike ones together, the blamed rank first."""
    alike: dict[tuple[str, str], list[int]] = {}
    for rank in sorted(evidence.ranks, key=lambda rank: (rank.number != verdict.rank, rank.number)):
        alike.setdefault(_fared(rank, evidence, verdict), []).append(rank.number)
    return tuple(
        Row(tuple(ranks), *(map(_of_several, fared) if len(ranks) > 1 else fared))
        for fared, ranks in alike.items()
    )


def _of_several(words: str) -> str:
    """What is said of one rank, as it is said of several."""
    return re.sub(r"\b(waits|is|was|has)\b", lambda verb: PLURAL[verb[0]], words, count=1)


def _fared(rank: Witness, evidence: Evidence, verdict: Verdict) -> tuple[str, str]:
    """The role of a rank in a failed run, and where it was."""
    if rank.kept_alive_by:
        return "", waiting.where(rank).lstrip()
    if rank.went_well:
        return "ended well" if verdict.rank != rank.number else "ended before the others", ""
    if verdict.kind in ("hung", "stopped"):
        return "", waiting.where(rank).lstrip(" ,")
    if verdict.kind == "mismatch":
        return "was stopped" if rank.fate is Fate.STOPPED else "ended", whereabouts(rank).lstrip()
    if rank.number == verdict.rank:
        return "failed first", ""
    if rank in evidence.raised:
        return "failed too", f"raised {rank.error.text.partition(chr(10))[0]}"
    if rank in evidence.culprits:
        return "failed too", ""
    return "ended as a consequence", whereabouts(rank).lstrip()
