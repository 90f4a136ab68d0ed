"""Notebook 07, the Transformer lab: mask, perplexity, three bugs, and a plan for a budget."""

import random
from collections.abc import Callable
from typing import Any

from course_utils.checking import refusals
from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, hint_for, plain, text
from course_utils.checking.failures import lonely
from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import close, is_number

Machine = dict[int, tuple[float, float, float]]
LONELY = lonely("Does every rank come to each collective, one with an empty share too?")
PLANS: list[tuple[int, int, int, Machine]] = [  # batch, memory, bytes per window, machine
    (8, 100, 10, {1: (0.5, 1.0, 0.25)}),
    (8, 30, 10, {1: (2.0, 1.0, 0.5)}),
    (8, 80, 10, {2: (1.0, 2.0, 1.5)}),
    (8, 80, 10, {1: (1.0, 2.0, 0.5), 2: (1.0, 2.0, 1.5)}),
    (8, 80, 10, {1: (1.0, 1.0, 0.5), 2: (1.0, 1.0, 99.5)}),
    (8, 20, 10, {1: (1.0, 1.0, 0.5), 2: (1.0, 1.0, 3.0)}),
    (12, 45, 10, {1: (1.0, 2.0, 0.0), 2: (1.0, 2.5, 1.5), 8: (0.1, 0.1, 0.1)}),
    (8, 80, 10, {2: (1.0, 2.0, 4.0), 1: (1.0, 1.0, 4.0)}),  # equally fast: fewer ranks
    (8, 80, 10, {1: (0.0, 2.0, 1.0)}),  # equally fast: fewer micro-batches
    (6, 10, 10, {1: (1.5, 1.5, 1.0), 3: (1.5, 1.5, 2.5)}),
]


@exercise("07.1", "causal mask", file="exercise_07_1.py", without=("create_block_mask",))
def check_07_1() -> list[str]:
    """Rows as they should be, for several lengths and windows."""
    probe("probe_07_1.py", 1)
    return [
        "no position looks ahead, each looks at itself and at all before it: lengths 1 to 9",
        "with a window of w each looks at the last w positions: 0, 1, 2, 3 and beyond the length",
    ]


@exercise("07.2", "exact perplexity over ranks", file="exercise_07_2.py")
def check_07_2() -> list[str]:
    """The value on each rank, and what was sent for it, with shares that differ."""
    probe_each("probe_07_2.py", (1, 2, 3, 4), hint=LONELY)
    return [
        "1, 2, 3 and 4 ranks with uneven shares, some of them empty: the same number on each rank",
        "equal to one process to 12 digits, over up to 400,000 tokens",
        "at most 2 collectives and 32 bytes per rank",
    ]


@exercise("07.3", "three bugs and no crash", file="exercise_07_3.py")
def check_07_3() -> list[str]:
    """Windows, replicas, steps, bytes and losses beside those of one process."""
    if refusals.is_as_given("exercise_07_3.py", "824e8257f3c1"):
        raise NotImplementedError
    probe_each("probe_07_3.py", (3, 2, 1))
    return [
        "1, 2 and 3 ranks: together they train on each batch once, in micro-batches",
        "the parameters of one process on every rank, one message per step, the right losses",
    ]


@exercise("07.4", "plan for a budget")
def check_07_4(plan: Callable) -> list[str]:
    """The fastest plan for several machines and budgets, some of them random."""
    chance = random.Random(7)
    cases = PLANS + [
        (
            chance.choice((6, 16, 24, 36)),
            chance.randint(10, 90),
            10,
            {n: tuple(chance.uniform(0.1, 5) for _ in range(3)) for n in (1, 2, 3, 4)},
        )
        for _ in range(20)
    ]
    for case in cases:
        call = f"my_plan(batch={case[0]}, memory={case[1]}, window_bytes={case[2]}, {case[3]})"
        _check_plan(call, called(call, plan, *case), *case)
    refused("my_plan with memory for no window", plan, 8, 9, 10, {1: (1.0, 1.0, 1.0)})
    refused("my_plan with a batch that no ranks divide", plan, 8, 99, 10, {3: (1.0, 1.0, 1.0)})
    return [
        "the fastest of all plans that fit, on 1 to 4 ranks, with its milliseconds",
        "equally fast: fewer ranks, then fewer micro-batches; nothing fits: a ValueError",
    ]


def _check_plan(
    call: str, got: Any, batch: int, memory: int, window_bytes: int, machine: Machine
) -> None:
    most, plans = memory // window_bytes, []
    for ranks, (fixed, per_window, finish) in machine.items():
        for b in range(1, most + 1):
            m, rest = divmod(batch, ranks * b)
            if m and not rest:
                plans.append((m * (fixed + b * per_window) + finish, ranks, m, b))
    best, ranks, m, b = min(plans)
    got = tuple(map(plain, got)) if isinstance(got, (tuple, list)) else got
    if not (isinstance(got, (tuple, list)) and len(got) == 4 and all(map(is_number, got))):
        raise Wrong(f"{call} returned {got!r}", "Four numbers: ranks, b, m and milliseconds.")
    if not close(got, expected := (ranks, b, m, best), 3e-7):  # float32 is fine
        said = f"{call} returned {text(tuple(got))}, expected {text(expected)}"
        raise Wrong(said, _plan_hint(*got, batch, most, machine, best))


def _plan_hint(
    ranks: int, b: int, m: int, milliseconds: float, batch: int, most: int, machine: Machine, best
) -> str:
    if ranks not in machine:
        return f"The machine was measured with {sorted(machine)} ranks."
    if ranks * b * m != batch:
        return f"{ranks} ranks x {m} micro-batches x {b} windows are not {batch} windows."
    if b > most:
        return f"{b} windows do not fit into the memory at once, only {most} do."
    fixed, per_window, finish = machine[ranks]
    passes = m * (fixed + b * per_window)
    if close(milliseconds, passes + finish):
        equal = "Equally fast. Which of the two has fewer ranks, or else fewer micro-batches?"
        slow = "There is a faster plan. Have you tried all ranks, and every b that fits?"
        return equal if close(milliseconds, best) else slow
    mistakes = {
        "You finish after every micro-batch. How often do the gradients travel?": passes
        + m * finish,
        "What comes after the last pass?": passes,
        "Every pass costs `fixed`. How many passes are there?": passes - (m - 1) * fixed + finish,
        "The ranks work at the same time. Whose passes do you add up?": ranks * passes + finish,
    }
    return hint_for(milliseconds, mistakes, f"That plan takes {passes + finish:.6g} ms.")
