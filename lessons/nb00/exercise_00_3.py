"""00.3: bus bandwidth from a measurement."""

from collections.abc import Callable

from course_utils.checking.calls import refused
from course_utils.checking.compare import judge
from course_utils.checking.findings import observe
from course_utils.checking.values import as_number

TITLE = "bus bandwidth from a measurement"
PROVEN = ("six collectives, 2 to 8 ranks", "a ValueError for any other name")
OURS = '''"""Bus bandwidth, after nccl-tests' PERFORMANCE.md."""


def busbw(collective: str, size: int, seconds: float, world_size: int) -> float:
    """Bus bandwidth in bytes per second of a collective over `size` bytes."""
    share = (world_size - 1) / world_size
    factors = {
        "all_reduce": 2 * share,
        "reduce_scatter": share,
        "all_gather": share,
        "all_to_all": share,
        "broadcast": 1,
        "reduce": 1,
    }
    if collective not in factors:
        raise ValueError(f"no factor is known for {collective!r}: choose from {', '.join(factors)}")
    return size / seconds * factors[collective]
'''
SHARED = ("reduce_scatter", "all_gather", "all_to_all")
CASES = ((1_000_000, 0.5, 4), (1_000_000, 0.5, 2), (999, 0.001, 3), (7_654_321, 0.37, 7))
CASES += ((64, 2.5e-5, 8),)
NAMES = ("all_recude", "ring", "all_reduce_", "broadcasts", "gather", "ALL_REDUCE", "")


def cases(busbw: Callable) -> None:
    """Every collective, several sizes and numbers of ranks; and names that are none."""
    for size, seconds, world in CASES:
        for name in ("all_reduce", *SHARED, "broadcast", "reduce"):
            look(busbw, name, size, seconds, world)
    slip = "For an unknown name, a number is worse than an error. Which error fits?"
    for name in NAMES:
        refused(f'busbw("{name}", 1, 1, 2)', busbw, name, 1, 1.0, 2, hint=slip)


def look(busbw: Callable, name: str, size: int, seconds: float, world: int) -> None:
    """One measurement."""

    def number(*arguments):
        return as_number(busbw(*arguments))

    found = observe(number, name, size, seconds, world)
    right = factor(name, world)
    bandwidth, known = size / seconds * right, mistakes(size / seconds, seconds, world, right)
    judge(
        f'busbw("{name}", {size}, {seconds:g}, {world})',
        found,
        bandwidth,
        known,
        "Multiply S / t by the share of S that each rank must send.",
        kinds=("float", "int", "Fraction", "Decimal"),
        tolerance=3e-7,  # float32 is fine
    )


def factor(collective: str, world: int) -> float:
    """The factor that turns S / t into bus bandwidth: nccl-tests, doc/PERFORMANCE.md."""
    share = (world - 1) / world
    return 2 * share if collective == "all_reduce" else share if collective in SHARED else 1


def mistakes(algbw: float, seconds: float, world: int, factor: float) -> dict[str, float]:
    """The question for each known mistake, with the bandwidth that it gives."""
    share = (world - 1) / world
    return {
        "Bits or bytes?": 8 * algbw * factor,
        "Per second of what? Divide by the time.": algbw * seconds**2 * factor,
        "That is in GB/s. Return bytes per second.": algbw * factor / 1e9,
        "That is algbw, what the caller sees. Which factor makes it busbw?": algbw,
        "Is your factor upside down?": algbw / factor,
        "That is the factor of all-reduce. Which one does this collective have?": algbw * 2 * share,
        "That is (N - 1)/N of S per second. How much must a rank send in this one?": algbw * share,
        "That is all ranks' bandwidth together. Return one rank's.": algbw * factor * world,
        "Divide by N too: what share of the data has to move?": algbw * (world - 1),
        "Whole numbers only? Keep the fraction.": algbw * factor // 1,
    }


FACTOR = "factors[collective]"
KNOWN = "if collective not in factors:"

TEXT = '"""Bus bandwidth, after nccl-tests\' PERFORMANCE.md."""'
OWN_ERROR = "import numpy\n\n\nclass NoSuch(ValueError):\n    pass\n"

WRONG = [
    ("algbw", "* " + FACTOR, "", "Which factor makes it busbw?"),
    (
        "half an all-reduce",
        FACTOR,
        "min(1, factors[collective] or 1) * share",
        "How much must a rank send in this one?",
    ),
    ("all like all-reduce", FACTOR, "2 * share", "That is the factor of all-reduce"),
    ("bits", "size / seconds", "8 * size / seconds", "Bits or bytes?"),
    ("gigabytes", FACTOR, FACTOR + " / 1e9", "That is in GB/s"),
    ("times the time", "size / seconds", "size * seconds", "Divide by the time"),
    ("upside down", "* " + FACTOR, "/ " + FACTOR, "upside down"),
    (
        "a whole number",
        "size / seconds",
        "size // seconds",
        "returned 1331999, expected 1332000",
    ),
    (
        "four ranks at most",
        FACTOR,
        FACTOR + " * (world_size < 5)",
        "0.37, 7) returned 0, expected 35464036",
    ),
    (
        "an unknown name is 1",
        KNOWN,
        "if False:",
        FACTOR,
        "factors.get(collective, 1)",
        'busbw("all_recude", 1, 1, 2) returned 1.0, expected a ValueError',
    ),
    (
        "only the example is refused",
        KNOWN,
        'if collective == "all_recude":',
        FACTOR,
        "factors.get(collective, 1)",
        'busbw("ring", 1, 1, 2) returned 1.0, expected a ValueError',
    ),
    (
        "what begins alike is taken for it",
        KNOWN,
        "if not collective.startswith(tuple(factors)):",
        FACTOR,
        "next(factors[each] for each in factors if collective.startswith(each))",
        'busbw("all_reduce_", 1, 1, 2)',
    ),
    ("a tensor of one number", "->", "lambda n: torch.tensor([n])", "asked for: a float"),
    (
        "an unknown name is a KeyError",
        KNOWN,
        "if False:",
        "raised KeyError: 'all_recude', expected a ValueError",
    ),
]
RIGHT = [
    (
        "float32, and an error of its own",
        TEXT,
        OWN_ERROR,
        "raise ValueError",
        "raise NoSuch",
        "size / seconds * factors[collective]",
        "numpy.float32(size / seconds * factors[collective])",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("a tensor", "->", "torch.tensor"),
    ("an exact fraction", "->", "__import__('fractions').Fraction"),
]
