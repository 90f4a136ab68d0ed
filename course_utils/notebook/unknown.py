"""The five unknown runs of notebook 12: the evidence of each, and whether an answer is right."""

import hashlib

from course_utils.errors import InputError
from course_utils.notebook.launching import launch
from course_utils.notebook.stacks import frames, stacks

RANKS, STALL = 4, 2  # seconds without a sign of life after which a run is stopped
ANSWERS = {  # by run: digests of the right answers, so that nobody reads them here by accident
    1: ("3ea67b293f24",),
    2: ("d0d0bea3c5ff", "14ad3bf09347"),
    3: ("51443a3494b0", "659355cb697e", "dbffcdccc7a2", "350d631b3cd2"),
    4: ("dafe85220284", "03fa9ad261e7"),
    5: ("e9204a1fb2b4",),
}


def evidence(number: int) -> None:
    """Start an unknown run, and print what faulthandler, exit codes and the ranks' output say."""
    _check(number)
    run = launch("unknown.py", number, nproc=RANKS, stall=STALL, check=False, show=False)
    print(f"run {number}")
    for rank, stack in zip(run.ranks, stacks(run), strict=True):
        how = {None: "still running", 0: "ended with status 0"}.get(rank.exitcode, "failed")
        said = (rank.stdout.splitlines() or [""])[-1]
        print(f"  rank {rank.index}: {how}, last said {said!r}")
        if stack:
            print("    " + " <- ".join(map(str, stack)))
        if "closed by peer" in rank.stderr:
            print("    raised RuntimeError: Connection closed by peer")
        if worker := rank.stderr.partition("(most recent call first):")[2]:
            calls = frames("Current thread" + worker)
            print("    its data loader's worker: " + " <- ".join(map(str, calls[:2])))
        if run.ok:
            print("    ms: " + _times(rank.reports[-1]["seconds"]))


def named(number: int, rank: int | None = None, line: int | None = None) -> bool:
    """Say whether the rank and the line of `unknown.py` are those of an unknown run.

    Args:
        number: of the run.
        rank: the rank to blame; None for an answer that is still to do.
        line: where it is stuck or loses its time; None if it has ended.
    """
    _check(number)
    right = digest(number, rank, line) in ANSWERS[number]
    state = "to do" if rank is None else "solved" if right else "not yet: look again"
    print(f"run {number}: {state}")
    return right


def digest(number: int, rank: int | None, line: int | None) -> str:
    """What `ANSWERS` holds of an answer."""
    return hashlib.sha256(f"run {number}: rank {rank}, line {line}".encode()).hexdigest()[:12]


def _check(number: int) -> None:
    if number not in ANSWERS:
        raise InputError(f"there is no unknown run {number!r}: choose one of 1 to {len(ANSWERS)}")


def _times(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {1000 * each:.0f}" for name, each in seconds.items())
