"""The five unknown runs of notebook 13: the evidence of each, and whether an answer is right."""

import re
from typing import NamedTuple

from nbtorchrun.diagnosis.stacks import frames, stacks
from nbtorchrun.errors import InputError
from nbtorchrun.launching import launch

RANKS, STALL = 4, 2  # seconds without a sign of life after which a run is stopped


class Answer(NamedTuple):
    """The rank to blame, the lines that are accepted, ours first, and the cause."""

    rank: int
    lines: tuple[int | None, ...]  # None is right wherever the rank has ended
    cause: str


ANSWERS = {
    1: Answer(3, (20,), "it stands in a write to a disk, and the others wait in log's all-reduce"),
    2: Answer(1, (18, 22), "it left save without the barrier in step 3: it is a step ahead"),
    3: Answer(2, (None, 11, 23, 24), "its data have fewer batches, so it ended with status 0"),
    4: Answer(0, (13, 12, None), "its augment takes 8 times as long; the others wait in average"),
    5: Answer(1, (11,), "its loader's worker waits for a lock that was held across the fork"),
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
        if told := re.search("Connection (closed|reset) by peer", rank.stderr):
            print(f"    raised RuntimeError: {told[0]}")
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
    right = rank == ANSWERS[number].rank and line in ANSWERS[number].lines
    state = "to do" if rank is None else "solved" if right else "not yet: look again"
    print(f"run {number}: {state}")
    return right


def answer(number: int) -> None:
    """Print our answer to an unknown run: rank, line and cause."""
    _check(number)
    rank, (line, *_), cause = ANSWERS[number]
    print(f"run {number}: rank {rank}, line {line}: {cause}")


def _check(number: int) -> None:
    if number not in ANSWERS:
        raise InputError(f"there is no unknown run {number!r}: choose one of 1 to {len(ANSWERS)}")


def _times(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {1000 * each:.0f}" for name, each in seconds.items())
