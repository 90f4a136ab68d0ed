"""Calls the student's global_rank for every process of several clusters, and beyond their ends."""

from course_utils.checking.calls import refused
from course_utils.checking.compare import judge
from course_utils.checking.findings import judging, observe

from exercise_00_1 import global_rank

CLUSTERS = ([2, 2], [4, 4], [1, 3, 2], [4, 2, 8], [3], [2, 1, 5, 1, 4])
NOBODY = (([2, 2], 0, 2), ([1, 3], 0, 1), ([2, 2], 2, 0), ([2, 2], 0, -1), ([2, 2], -1, 0))


def mistakes(cluster: list[int], node: int, local: int) -> dict[str, int]:
    """The question for each known mistake, with the rank that it gives."""
    before = sum(cluster[:node])
    every = node * cluster[node] + local
    return {
        "In yours, every node begins at rank 0. How many ranks come before this node?": local,
        "Are all nodes as large as this one? Look at those before it.": every,
        "Are all nodes as large as the first one?": node * cluster[0] + local,
        "Is this node itself among those before it?": before + cluster[node] + local,
        "Which number counts nodes, and which one processes?": local * len(cluster) + node,
        "Ranks count from 0. Does yours begin at 1?": before + local + 1,
    }


for cluster in CLUSTERS:
    for node, ranks in enumerate(cluster):
        for local in range(ranks):
            found = observe(global_rank, node, local, list(cluster), names=("", "", "the list"))
            with judging():
                call = f"global_rank({node}, {local}, {cluster})"
                known, right = mistakes(cluster, node, local), sum(cluster[:node]) + local
                hint = "How many processes are on the nodes before this one?"
                judge(call, found, right, known, hint, kinds=("int",))
for cluster, node, local in NOBODY:
    there = 0 <= node < len(cluster)
    hint = f"There is no node {node}."
    if there:
        hint = f"Node {node} has local ranks 0 to {cluster[node] - 1}."
    with judging():
        call = f"global_rank({node}, {local}, {cluster})"
        refused(call, global_rank, node, local, list(cluster), hint=hint)
