"""17.3: find the bug from the gap."""

import itertools
from collections.abc import Callable
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong

TITLE = "find the bug from the gap"
PROVEN = (
    "five bugs and a right system, large and small, with tolerances of float64 and of bfloat16",
    "at most five experiments for each",
)
OURS = '''"""Which bug is it? A decision from a few gaps."""

from collections.abc import Callable


def find_bug(gap: Callable, tolerance: float) -> str:
    """One of "none", "stale", "late", "order", "buffer" and "base", from a few experiments."""
    if gap(train=0, rest=1) > tolerance:  # nothing has been trained: the copy itself is wrong
        if gap(train=0, rest=1, generators=1) <= tolerance:
            return "order"  # one generator has no shards to mix up
        if gap(train=0, rest=1, adapter=False) <= tolerance:
            return "base"
        return "buffer"
    if gap(train=4, rest=0) <= tolerance:
        return "none"
    if gap(train=4, rest=2) <= tolerance:
        return "late"  # it has caught up
    return "stale"
'''
NAMES = ("none", "stale", "late", "order", "buffer", "base")
MOST = 5  # experiments


class System:
    """Answers as two engines with a bug would; the sizes are made up around those we measured."""

    def __init__(self, bug: str, size: float, noise: float) -> None:
        self.bug, self.size, self.noise = bug, size, noise
        self.asked: list[str] = []

    def __call__(self, *given: Any, **named: Any) -> float:
        """The gap of one experiment."""
        order = ("train", "rest", "generators", "adapter")
        values = {"train": 0, "rest": 1, "generators": 2, "adapter": True}
        values |= dict(zip(order, given, strict=False)) | named
        if unknown := values.keys() - set(order):
            raise TypeError(f"gap has no argument {min(unknown)}")
        self.asked.append(", ".join(f"{name}={value}" for name, value in values.items()))
        train, rest = values["train"], values["rest"]
        if train + rest < 1:
            raise ValueError("train + rest is 0: no update, so there is nothing to compare")
        moved = max(train - (rest == 0), 0)  # weights changed before the last generation
        match self.bug:
            case "stale":
                found = self.size * moved
            case "late":
                found = self.size if moved and rest < 2 else 0.0
            case "order":
                found = self.size if values["generators"] > 1 else 0.0
            case "base":
                found = self.size if values["adapter"] else 0.0
            case "buffer":
                found = self.size
            case _:
                found = 0.0
        return found + self.noise


def cases(find_bug: Callable) -> None:
    """Every bug, in several sizes."""
    precisions = ((1e-15, 2e-14), (0.1, 0.8))  # noise of right engines, tolerance
    for (noise, tolerance), bug in itertools.product(precisions, NAMES):
        for factor in (3, 20):
            look(find_bug, bug, factor * tolerance, noise, tolerance)


def look(find_bug: Callable, bug: str, size: float, noise: float, tolerance: float) -> None:
    """One system."""
    system = System(bug, size, noise)
    case = f"a system with a gap of {size:.2g}, tolerance {tolerance:g}"
    if bug == "none":
        case = f"a right system, whose gap is {noise:g}, tolerance {tolerance:g}"
    got = called(case, find_bug, system, tolerance)
    if got not in NAMES:
        raise Wrong(f"{case}: got {got!r}", f"Return one of {', '.join(map(repr, NAMES))}.")
    if got != bug:
        asked = "; ".join(system.asked) or "nothing"
        raise Wrong(f"{case}: you say {got!r}. You asked: {asked}", hint(bug, got))
    if len(system.asked) > MOST:
        said = f"{case}: {len(system.asked)} experiments, at most {MOST} are allowed"
        raise Wrong(said, "Which experiment splits what is left in two?")


def hint(bug: str, got: str) -> str:
    """The question for a wrong name."""
    static, moving = {"order", "buffer", "base"}, {"stale", "late"}
    if bug == "none":
        return "Two right engines differ in rounding. What is `tolerance` for?"
    if got == "none":
        if bug in moving:
            return "With `train=0` no weight has changed yet. What does training show?"
        return "The gap is above the tolerance before anything is trained."
    if {bug, got} & static and {bug, got} & moving:
        return "Is there a gap before anything is trained? Ask with `train=0`."
    if bug in moving:
        return "Train, then rest. Which of the two catches up when the weights stand still?"
    return (
        "Which experiment makes this bug harmless: one generator, or no adapter? "
        "Take one away at a time."
    )


STATIC = "if gap(train=0, rest=1) > tolerance:"
WRONG = [
    ("zero in place of the tolerance", STATIC, "if gap(train=0, rest=1) > 0:", "tolerance"),
    ("a tolerance of one's own", "> tolerance", "> 1e-6", "tolerance"),
    (
        "looks at training only",
        STATIC,
        "if False:",
        "before anything is trained",
    ),
    (
        "never trains",
        "if gap(train=4, rest=0) <= tolerance:",
        "if True:",
        "What does training show?",
    ),
    (
        "one update is too few",
        "if gap(train=4, rest=0) <= tolerance:",
        "if gap(train=1, rest=0) <= tolerance:",
        "What does training show?",
    ),
    (
        "does not rest",
        "if gap(train=4, rest=2) <= tolerance:",
        "if gap(train=4, rest=0) <= tolerance:",
        "Train, then rest",
    ),
    (
        "rests too briefly",
        "if gap(train=4, rest=2) <= tolerance:",
        "if gap(train=4, rest=1) <= tolerance:",
        "Train, then rest",
    ),
    (
        "never with one generator",
        "if gap(train=0, rest=1, generators=1) <= tolerance:",
        "if False:",
        "Take one away at a time",
    ),
    (
        "both taken away at once",
        "if gap(train=0, rest=1, generators=1) <= tolerance:",
        "if gap(train=0, rest=1, generators=1, adapter=False) <= tolerance:",
        "Take one away at a time",
    ),
    (
        "asks for everything first",
        STATIC,
        "for n in range(6):\n    gap(n)\nif gap(train=0, rest=1) > tolerance:",
        "splits what is left",
    ),
]
RIGHT = [
    (
        "trains longer",
        "if gap(train=4, rest=0) <= tolerance:",
        "if gap(train=9, rest=0) <= tolerance:",
    ),
    (
        "rests longer",
        "if gap(train=4, rest=2) <= tolerance:",
        "if gap(train=4, rest=5) <= tolerance:",
    ),
]
