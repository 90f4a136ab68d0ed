"""Calls the student's global_rank for every process of several clusters, and beyond their ends."""

from exercise_00_1 import global_rank

from course_utils.exercises.findings import report

CLUSTERS = ([2, 2], [4, 4], [1, 3, 2], [4, 2, 8])
NOBODY = (([2, 2], 0, 2), ([1, 3], 0, 1), ([2, 2], 2, 0), ([2, 2], 0, -1), ([2, 2], -1, 0))


def answer(cluster: list[int], node: int, local: int) -> dict[str, object]:
    """What the student's function says, or the type of error with which it refuses."""
    given = list(cluster)
    try:
        value = global_rank(node, local, given)
    except (ValueError, LookupError, AssertionError) as error:  # the rest is shown with its line
        return {"error": type(error).__name__}
    kind = type(value).__name__
    return {"value": value if kind == "int" else None, "kind": kind, "changed": given != cluster}


for cluster in CLUSTERS:
    for node, count in enumerate(cluster):
        for local in range(count):
            report(cluster=cluster, node=node, local=local, **answer(cluster, node, local))
for cluster, node, local in NOBODY:
    report(cluster=cluster, node=node, local=local, nobody=True, **answer(cluster, node, local))
