"""07.5: plan for a budget."""

import random
from collections.abc import Callable

from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, hint_for, plain, text
from course_utils.checking.values import close, is_number, listed

Machine = dict[int, tuple[float, float, float]]
TITLE = "plan for a budget"
PROVEN = (
    "the fastest of all plans that fit, on 1 to 8 ranks, with its milliseconds",
    "equally fast: fewer ranks, then fewer micro-batches; nothing fits: a ValueError",
)
OURS = '''"""The fastest step that a budget of memory allows."""


def my_plan(
    batch: int, memory: int, window_bytes: int, machine: dict[int, tuple[float, float, float]]
) -> tuple[int, int, int, float]:
    """Ranks, windows per micro-batch, micro-batches and milliseconds of the fastest step."""
    plans = []
    for ranks, (fixed, per_window, finish) in machine.items():
        for b in range(1, memory // window_bytes + 1):
            m, rest = divmod(batch, ranks * b)
            if m and not rest:
                plans.append((m * (fixed + b * per_window) + finish, ranks, m, b))
    if not plans:
        raise ValueError(f"no micro-batch fits: a window needs {window_bytes} bytes of {memory}")
    milliseconds, ranks, m, b = min(plans)
    return ranks, b, m, milliseconds
'''
PLANS: list[tuple[int, int, int, Machine]] = [  # batch, memory, bytes per window, machine
    (8, 100, 10, {1: (0.5, 1.0, 0.25)}),
    (8, 30, 10, {1: (2.0, 1.0, 0.5)}),
    (8, 80, 10, {2: (1.0, 2.0, 1.5)}),
    (8, 80, 10, {1: (1.0, 2.0, 0.5), 2: (1.0, 2.0, 1.5)}),
    (8, 80, 10, {1: (1.0, 1.0, 0.5), 2: (1.0, 1.0, 99.5)}),
    (8, 20, 10, {1: (1.0, 1.0, 0.5), 2: (1.0, 1.0, 3.0)}),
    (12, 45, 10, {1: (1.0, 2.0, 0.0), 2: (1.0, 2.5, 1.5), 8: (0.1, 0.1, 0.1)}),
    (16, 45, 10, {1: (1.0, 2.0, 0.0), 8: (0.1, 0.1, 0.1)}),
    (8, 80, 10, {2: (1.0, 2.0, 4.0), 1: (1.0, 1.0, 4.0)}),  # equally fast: fewer ranks
    (8, 80, 10, {1: (0.0, 2.0, 1.0)}),  # equally fast: fewer micro-batches
    (6, 10, 10, {1: (1.5, 1.5, 1.0), 3: (1.5, 1.5, 2.5)}),
]
NO_PLANS: list[tuple[int, int, int, Machine]] = [
    (8, 9, 10, {1: (1.0, 1.0, 1.0)}),
    (8, 99, 10, {3: (1.0, 1.0, 1.0)}),
    (8, 99, 10, {16: (1.0, 1.0, 1.0)}),
    (7, 0, 10, {1: (1.0, 1.0, 1.0), 2: (1.0, 1.0, 1.0)}),
]


def cases(my_plan: Callable) -> None:
    """The fastest plan for several machines and budgets, some of them random; and none."""
    chance = random.Random(7)
    drawn = [
        (
            chance.choice((6, 16, 24, 36)),
            chance.randint(10, 90),
            10,
            {n: tuple(chance.uniform(0.1, 5) for _ in range(3)) for n in (1, 2, 3, 4)},
        )
        for _ in range(20)
    ]
    for case in PLANS + drawn:
        look(my_plan, *case)
    for case in NO_PLANS:
        hint = "No plan fits. A caller who is not told would train with one that does not."
        refused(named(*case), my_plan, *case, hint=hint)


def named(batch: int, memory: int, window_bytes: int, machine: Machine) -> str:
    """How a message names a call."""
    return f"my_plan(batch={batch}, memory={memory}, window_bytes={window_bytes}, {machine})"


def look(my_plan: Callable, batch: int, memory: int, window_bytes: int, machine: Machine) -> None:
    """One machine and one budget."""
    call = named(batch, memory, window_bytes, machine)
    answer = called(call, my_plan, batch, memory, window_bytes, machine)
    most, plans = memory // window_bytes, []
    for ranks, (fixed, per_window, finish) in machine.items():
        for b in range(1, most + 1):
            m, rest = divmod(batch, ranks * b)
            if m and not rest:
                plans.append((m * (fixed + b * per_window) + finish, ranks, m, b))
    best, ranks, m, b = min(plans)
    items = listed(answer)
    got = None if items is None else tuple(map(plain, items))
    if got is None or len(got) != 4 or not all(map(is_number, got)):
        shown = repr(answer) if got is None else got
        raise Wrong(f"{call} returned {shown}", "Four numbers: ranks, b, m and milliseconds.")
    if not close(got, expected := (ranks, b, m, best), 3e-7):  # float32 is fine
        said = f"{call} returned {text(got)}, expected {text(expected)}"
        raise Wrong(said, hint(*got, batch, most, machine, best))


def hint(
    ranks: int, b: int, m: int, milliseconds: float, batch: int, most: int, machine: Machine, best
) -> str:
    """The question that fits a wrong plan."""
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


TIME = "m * (fixed + b * per_window) + finish"

WRONG = [
    (
        "None, where nothing fits",
        "raise ValueError(",
        "return None, (",
        "expected a ValueError",
    ),
    ("numbers as words", "->", "lambda plan: [*map(str, plan)]", "Four numbers"),
    ("a dict", "->", "lambda plan: dict(enumerate(plan))", "Four numbers"),
    (
        "one rank",
        "m and not rest",
        "m and not rest and ranks == min(machine)",
        "There is a faster plan",
    ),
    (
        "memory ignored",
        "memory // window_bytes + 1",
        "batch + 1",
        "do not fit into the memory",
    ),
    ("rounded down", "m and not rest", "m", "are not 8 windows"),
    (
        "a message per pass",
        TIME,
        "m * (fixed + b * per_window + finish)",
        "You finish after every",
    ),
    ("no finish", " + finish", "", "What comes after the last pass?"),
    ("one fixed", TIME, "fixed + m * b * per_window + finish", "How many passes"),
    ("all ranks added", TIME, "ranks * " + TIME, "at the same time"),
    (
        "most ranks of equals",
        "min(plans)",
        "min(plans, key=lambda plan: (plan[0], -plan[1]))",
        "Which of the two has fewer ranks",
    ),
    ("a shorter tuple", "return ranks, b, m, milliseconds", "return ranks, b", "Four"),
]
RIGHT = [
    ("a list", "->", "list"),
    ("a generator", "->", "iter"),
    ("numpy's numbers", "->", "numpys"),
    (
        "single precision",
        "->",
        "lambda plan: leaves(plan, lambda n: torch.tensor(n, dtype="
        "torch.float32 if isinstance(n, float) else torch.int64))",
    ),
    ("exact fractions", "->", "lambda plan: leaves(plan, __import__('fractions').Fraction)"),
    (
        "another way round",
        "min(plans)",
        "min(plans, key=lambda plan: (plan[0], plan[1], -plan[3]))",
    ),
]
