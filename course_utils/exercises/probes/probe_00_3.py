"""Calls the student's busbw with measurements of every collective, and with an unknown one."""

from exercise_00_3 import busbw

from course_utils.exercises.findings import report

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce")


def answer(*measurement: object) -> dict[str, object]:
    """What the student's function says, or the type of error with which it refuses."""
    try:
        value = busbw(*measurement)
    except (ValueError, LookupError, AssertionError) as error:  # the rest is shown with its line
        return {"error": type(error).__name__}
    number = isinstance(value, (int, float))
    return {"value": float(value) if number else None, "kind": type(value).__name__}


for size, seconds, world in ((1_000_000, 0.5, 4), (1_000_000, 0.5, 2), (999, 0.001, 3)):
    for name in COLLECTIVES:
        found = answer(name, size, seconds, world)
        report(collective=name, size=size, seconds=seconds, world=world, **found)
report(collective="all_recude", size=1, seconds=1.0, world=2, **answer("all_recude", 1, 1.0, 2))
