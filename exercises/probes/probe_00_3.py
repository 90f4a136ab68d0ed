"""Calls the student's busbw with measurements of every collective, and with an unknown one."""

from course_utils.checking.calls import refused
from course_utils.checking.compare import judge
from course_utils.checking.findings import judging, observe

from exercise_00_3 import busbw

NUMBERS = ("float", "int", "float32", "float64")
SHARED = ("reduce_scatter", "all_gather", "all_to_all")
CASES = ((1_000_000, 0.5, 4), (1_000_000, 0.5, 2), (999, 0.001, 3), (7_654_321, 0.37, 7))


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


for size, seconds, world in CASES:
    for name in ("all_reduce", *SHARED, "broadcast", "reduce"):
        found = observe(busbw, name, size, seconds, world)
        right = factor(name, world)
        with judging():
            call = f'busbw("{name}", {size}, {seconds:g}, {world})'
            known = mistakes(size / seconds, seconds, world, right)
            hint = "Multiply S / t by the share of S that each rank must send."
            bandwidth, loose = size / seconds * right, 3e-7  # float32 is fine
            judge(call, found, bandwidth, known, hint, kinds=NUMBERS, tolerance=loose)
with judging():
    slip = "For an unknown name, a number is worse than an error. Which error fits?"
    refused('busbw("all_recude", 1, 1, 2)', busbw, "all_recude", 1, 1.0, 2, hint=slip)
