"""Calls the student's lateness with times of several ranks, and with times that cannot be."""

import numpy as np

from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, count, expect, has_nan, kind, plain, shape
from course_utils.checking.findings import judging

from exercise_12_2 import lateness

MANY = "An array of the shape of `enter`: one row per rank, one column per collective."


def times(ranks: int, collectives: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """When ranks enter and leave, and how late each comes; no two columns are alike."""
    chance = np.random.default_rng(seed)
    late = chance.uniform(0.01, 0.3, (ranks, collectives))
    late[chance.permutation(ranks)[0], :] = 0.0
    late[0, 1:] += 0.5 * (seed % 2)  # now and then another rank is the first
    late -= late.min(axis=0)
    start = 1000.0 + np.arange(collectives) * 2.0
    enter = start + late
    return enter, enter.max(axis=0) + chance.uniform(0.001, 0.02, (ranks, collectives)), late


def look(ranks: int, collectives: int, seed: int, listed: bool = False) -> None:
    """Judge one call, of times that are arrays or lists."""
    enter, leave, late = times(ranks, collectives, seed)
    given = (enter.tolist(), leave.tolist()) if listed else (enter, leave)
    enter_before, leave_before = enter.copy(), leave.copy()
    call = f"lateness of {count(ranks, 'rank')} and {count(collectives, 'collective')}"
    got = called(call + (" (lists)" if listed else ""), lateness, *given)
    if not (np.array_equal(given[0], enter_before) and np.array_equal(given[1], leave_before)):
        raise Wrong(f"{call} changed its arguments", "The caller may still need them.")
    if shape(plain(got)) != late.shape:
        said = f"{call} returned {kind(got)} of shape {shape(plain(got))}, expected {late.shape}"
        raise Wrong(said, MANY)
    if has_nan(plain(got)):
        raise Wrong(f"{call} returned not-a-number", "Which of your operations gives nan here?")
    mistakes = {
        "That is the time inside the collective: the early ranks wait in there.": leave - enter,
        "That is how long each rank waited for the last one: who waits is not late.": enter.max(0)
        - enter,
        "Compare the ranks with each other for each collective: along which axis?": enter
        - enter.min(axis=-1, keepdims=True),
        "The first rank of the whole run is not the first one in each collective.": enter
        - enter.min(),
        "Late against the mean? Then a rank is late because another one was early.": enter
        - enter.mean(axis=0),
        "Late against rank 0? Rank 0 may be the late one.": enter - enter[0],
        "Late is who *enters* late; `leave` is nearly the same for all.": leave - leave.min(axis=0),
    }
    hint = "Who came first to this collective, and how much later came each rank?"
    expect(f"{call} returned", got, late, mistakes, hint, tolerance=1e-6)


for ranks in (2, 3, 4):
    for collectives in (1, 2, 5, 7):
        for seed in (0, 1):
            with judging():
                look(ranks, collectives, seed)
with judging():
    look(3, 4, 3, listed=True)
with judging():
    enter, leave, _ = times(3, 4, 0)
    refused("lateness with a `leave` of another shape", lateness, enter, leave[:, :-1])
with judging():
    leave[1, 2] = enter[1, 2] - 0.001
    hint = "Compare every leave with the enter of the same rank and collective."
    refused("lateness of a rank that leaves before it enters", lateness, enter, leave, hint=hint)
