"""14.3: what failures cost."""

from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import expect

TITLE = "what failures cost"
PROVEN = ("the share of time lost to saves, lost work and restarts, for five sets of numbers",)
OURS = '''"""How much of a training's time failures cost."""


def lost(interval: float, save: float, restart: float, between: float) -> float:
    """Seconds lost per second of training. All arguments are in seconds."""
    return save / interval + (interval / 2 + restart) / between
'''
NUMBERS = (  # interval, save, restart, between
    (1000.0, 60.0, 600.0, 11_000.0),
    (600.0, 30.0, 0.0, 7200.0),
    (3600.0, 0.0, 300.0, 86_400.0),
    (500.0, 20.0, 100.0, 1e12),
    (7.0, 3.0, 2.0, 90.0),
)


def cases(lost: Callable) -> None:
    """The share of time lost, for several intervals, saves, restarts and failure rates."""
    for interval, save, restart, between in NUMBERS:
        call = f"lost({interval:g}, {save:g}, {restart:g}, {between:g})"
        got = called(call, lost, interval, save, restart, between)
        right = save / interval + (interval / 2 + restart) / between
        known = mistakes(interval, save, restart, between)
        hint = "Add one save per interval, and per failure half an interval and a restart."
        expect(f"{call} returned", got, right, known, hint, tolerance=1e-6)


def mistakes(interval: float, save: float, restart: float, between: float) -> dict[str, float]:
    """The question for each known mistake, with the number that it gives."""
    saves, work = save / interval, interval / 2
    right = saves + (work + restart) / between
    return {
        "On average a failure comes in the middle of an interval, not at its end.": saves
        + (interval + restart) / between,
        "After a failure you also have to restart.": saves + work / between,
        "You left out the saves. How many seconds of saving per second of training?": (
            work + restart
        )
        / between,
        "You left out the failures.": saves,
        "That is the time that is left. How much is lost?": 1 - right,
        "That is in percent: return a share.": 100 * right,
        "A restart is needed once per failure, not once per interval.": saves
        + restart / interval
        + work / between,
        "Those are seconds lost per interval. How many per second of training?": right * interval,
    }


LOST = "save / interval + (interval / 2 + restart) / between"

WRONG = [
    ("a whole interval", "interval / 2", "interval", "in the middle of an interval"),
    ("no restart", "(interval / 2 + restart)", "interval / 2", "have to restart"),
    ("no saves", "save / interval + ", "", "You left out the saves"),
    ("no failures", LOST, "save / interval", "You left out the failures"),
    ("what is left", LOST, f"1 - ({LOST})", "is left"),
    ("percent", LOST, f"100 * ({LOST})", "percent"),
    (
        "a restart per interval",
        LOST,
        "(save + restart) / interval + interval / 2 / between",
        "once per failure",
    ),
    (
        "seconds per interval",
        LOST,
        f"interval * ({LOST})",
        "Those are seconds",
    ),
    ("not a number", LOST, "float('nan')", "nan"),
    ("beyond every float", LOST, "10**400", "returned int beyond 1e308, expected"),
    ("a type", LOST, "float", "Return a number"),
    ("divides by zero", LOST, "save / 0", "line 6: return save / 0"),
    ("never returns", LOST, "max(__import__('itertools').count())", "Which loop never ends?"),
    ("a list", "->", "lambda share: [share]", "the form that was asked for: a number alone"),
    ("nothing", "->", "lambda share: None", "end without a `return`"),
    ("an exit", "->", "exit", "ended with an exit"),
]
RIGHT = [
    (
        "over a common denominator",
        LOST,
        "(save * between + interval * (interval / 2 + restart)) / (interval * between)",
    ),
    ("a fraction", LOST, f"__import__('fractions').Fraction({LOST})"),
    ("numpy's numbers", "->", "numpys"),
    ("single precision", "->", "lambda share: torch.tensor(share, dtype=torch.float32)"),
]
