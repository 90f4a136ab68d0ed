"""13.2: lateness from timestamps."""

from collections.abc import Callable

import numpy as np

from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, count, expect, has_nan, kind, plain, shape

TITLE = "lateness from timestamps"
PROVEN = (
    "2, 3 and 4 ranks, 1 to 7 collectives; lists and arrays: the seconds after the first rank",
    "shapes that differ, and a rank that leaves before it enters: a ValueError",
)
OURS = '''"""Who is late? From the times at which the ranks enter and leave their collectives."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def lateness(enter: ArrayLike, leave: ArrayLike) -> NDArray:
    """Seconds that each rank was late for each collective: 0 for the one that came first.

    Args:
        enter: when each rank entered each collective, (ranks, collectives), in seconds.
        leave: when it left, the same shape; all times on one clock.

    Raises:
        ValueError: the shapes differ, or a rank leaves before it enters.
    """
    enter, leave = np.asarray(enter, dtype=float), np.asarray(leave, dtype=float)
    if enter.shape != leave.shape or enter.ndim != 2:
        raise ValueError(
            f"enter {enter.shape} and leave {leave.shape} must both be (ranks, collectives)"
        )
    if not (leave >= enter).all():
        raise ValueError("a rank leaves a collective before it enters it: are the clocks aligned?")
    return enter - enter.min(axis=0)
'''
MANY = "An array of the shape of `enter`: one row per rank, one column per collective."


STRETCHED = "The two shapes differ, and numpy stretches one of them. Do you compare the shapes?"
ORDER = "Compare every leave with the enter of the same rank and collective."


def cases(lateness: Callable) -> None:
    """Times of 2, 3 and 4 ranks, as arrays and lists, and times that cannot be."""
    for ranks in (2, 3, 4):
        for collectives in (1, 2, 5, 7):
            for seed in (0, 1):
                look(lateness, ranks, collectives, seed)
    look(lateness, 3, 4, 3, listed=True)
    enter, leave, _ = times(3, 4, 0)
    last = leave.max(axis=0, keepdims=True)
    for other in (leave[:, :-1], leave[:-1], last, np.full((3, 1), 1e4)):
        call = f"lateness, where `enter` has shape (3, 4) and `leave` {other.shape},"
        refused(call, lateness, enter, other, hint=STRETCHED)
        refused(f"{call} as lists,", lateness, enter.tolist(), other.tolist(), hint=STRETCHED)
    for rank, collective in ((1, 2), (0, 0), (2, 3)):
        _, wrong, _ = times(3, 4, 0)
        wrong[rank, collective] = enter[rank, collective] - 0.001
        call = f"lateness, where rank {rank} leaves collective {collective} before it enters,"
        refused(call, lateness, enter, wrong, hint=ORDER)


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


def look(lateness: Callable, ranks: int, collectives: int, seed: int, listed: bool = False) -> None:
    """Judge one call, of times that are arrays or lists."""
    enter, leave, late = times(ranks, collectives, seed)
    given = (enter.tolist(), leave.tolist()) if listed else (enter, leave)
    call = f"lateness of {count(ranks, 'rank')} and {count(collectives, 'collective')}"
    got = called(call + (" (lists)" if listed else ""), lateness, *given)
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


FIRST = "enter.min(axis=0)"
LATE = f"enter - {FIRST}"

WRONG = [
    ("the time inside", LATE, "leave - enter", "the early ranks wait in there"),
    ("the waits", LATE, "enter.max(axis=0) - enter", "who waits is not late"),
    ("the wrong axis", FIRST, "enter.min(axis=1, keepdims=True)", "along which axis?"),
    ("one minimum for all", FIRST, "enter.min()", "whole run"),
    ("against the mean", FIRST, "enter.mean(axis=0)", "Late against the mean?"),
    ("against rank 0", FIRST, "enter[0]", "Rank 0 may be the late one."),
    ("who leaves late", LATE, "leave - leave.min(axis=0)", "who *enters* late"),
    ("one number a rank", LATE, f"({LATE}).sum(axis=1)", "one row per rank"),
    (
        "impossible times accepted",
        "not (leave >= enter).all()",
        "False",
        "expected a ValueError",
    ),
    (
        "only arrays",
        "np.asarray(enter, dtype=float), np.asarray(leave, dtype=float)",
        "enter, leave",
        "(lists) raised AttributeError",
    ),
    ("nan", LATE, f"({LATE}) * np.nan", "Which of your operations gives nan"),
    (
        "in place",
        f"return {LATE}",
        f"enter -= {FIRST}\nreturn enter",
        "changed its arguments",
    ),
    (
        "no look at the shapes",
        "enter.shape != leave.shape or enter.ndim != 2",
        "False",
        "Do you compare the shapes?",
    ),
    (
        "only the number of ranks",
        "enter.shape != leave.shape",
        "len(enter) != len(leave)",
        "Do you compare the shapes?",
    ),
    (
        "only the last collective",
        "(leave >= enter).all()",
        "(leave >= enter)[:, -1].all()",
        "the same rank and collective",
    ),
    (
        "some ranks leave in time",
        "(leave >= enter).all()",
        "(leave >= enter).any()",
        "the same rank and collective",
    ),
    (
        "one buffer for all calls",
        f"return {LATE}",
        "buffer = lateness.__dict__.setdefault(str(enter.shape), np.empty(enter.shape))\n"
        f"buffer[:] = {LATE}\nreturn buffer",
        "changed what the call before had returned",
    ),
    ("a row too many", "->", "lambda late: late[None]", "one row per rank"),
]
RIGHT = [
    (
        "by loops, as lists",
        "def lateness(enter, leave):\n"
        "    rows = [list(map(float, row)) for row in enter]\n"
        "    others = [list(map(float, row)) for row in leave]\n"
        "    if [len(r) for r in rows] != [len(r) for r in others]:\n"
        "        raise ValueError\n"
        "    if any(b < a for x, y in zip(rows, others) for a, b in zip(x, y)):\n"
        "        raise ValueError\n"
        "    first = [min(column) for column in zip(*rows)]\n"
        "    return [[t - f for t, f in zip(row, first)] for row in rows]\n",
    ),
    ("lists", "->", "lambda late: [list(row) for row in late]"),
    ("a tensor", "->", "torch.from_numpy"),
    ("who leaves at once is refused, too", "(leave >= enter)", "(leave > enter)"),
]
