"""Plausible wrong answers to the exercises 00.1 and 00.3, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message), and
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

from course_utils.exercises.checking import find

_RANK = """
def global_rank(node_rank, local_rank, ranks_on_node):
    {body}
"""

_CHECKED = """
def global_rank(node_rank, local_rank, ranks_on_node):
    if not 0 <= node_rank < len(ranks_on_node) or not 0 <= local_rank < ranks_on_node[node_rank]:
        raise ValueError("no such process")
    {body}
"""

_BUSBW = """
def busbw(collective, size, seconds, world_size):
    share = (world_size - 1) / world_size
    factors = {{"all_reduce": 2 * share, "reduce_scatter": share, "all_gather": share,
               "all_to_all": share, "broadcast": 1, "reduce": 1}}
    {body}
"""

_KNOWN = "if collective not in factors: raise ValueError(collective)"


def _rank(body: str) -> str:
    return _RANK.format(body=body)


def _checked(body: str) -> str:
    return _CHECKED.format(body=body)


def _busbw(*lines: str) -> str:
    return _BUSBW.format(body="\n    ".join(lines))


_REPORT = """
from course_utils.worker import report
report(cluster=[2, 2], value=3)
"""

_NO_SUCH = "class NoSuch(ValueError):\n    pass\n\n\n"

RIGHT = {
    "00.1": [
        (
            "values of its own, and an error of its own",
            _NO_SUCH + find("00.1").solution.replace("raise ValueError", "raise NoSuch") + _REPORT,
        )
    ],
    "00.3": [
        (
            "float32, and an error of its own",
            _NO_SUCH
            + "import numpy\n"
            + _busbw(
                "if collective not in factors: raise NoSuch(collective)",
                "return numpy.float32(size / seconds * factors[collective])",
            ),
        )
    ],
}

MUTANTS = {
    "00.1": [
        ("the local rank", _checked("return local_rank"), "In yours, every node begins at rank 0"),
        (
            "all nodes like this one",
            _checked("return node_rank * ranks_on_node[node_rank] + local_rank"),
            "Are all nodes as large as this one?",
        ),
        (
            "all nodes like the first",
            _checked("return node_rank * ranks_on_node[0] + local_rank"),
            "Are all nodes as large as the first one?",
        ),
        (
            "one node too many",
            _checked("return sum(ranks_on_node[: node_rank + 1]) + local_rank"),
            "Is this node itself among those before it?",
        ),
        (
            "round robin",
            _checked("return local_rank * len(ranks_on_node) + node_rank"),
            "Which number counts nodes",
        ),
        (
            "a formula for three nodes",
            _checked(
                "first, second = [*ranks_on_node, 0][:2]\n"
                "    return local_rank + first * (node_rank > 0) + second * (node_rank > 1)"
            ),
            "[2, 1, 5, 1, 4]) returned 3, expected 8",
        ),
        (
            "the error returned",
            _rank(
                "if not 0 <= node_rank < len(ranks_on_node): return ValueError\n"
                "    if not 0 <= local_rank < ranks_on_node[node_rank]: return ValueError\n"
                "    return sum(ranks_on_node[:node_rank]) + local_rank"
            ),
            "You returned the error: raise it instead.",
        ),
        (
            "counted from 1",
            _checked("return sum(ranks_on_node[:node_rank]) + local_rank + 1"),
            "Does yours begin at 1?",
        ),
        (
            "nobody is refused",
            _rank("return sum(ranks_on_node[:node_rank]) + local_rank"),
            "global_rank(0, 2, [2, 2]) returned 2, expected a ValueError",
        ),
        (
            "a node that is not there",
            _rank(
                "if local_rank not in range(ranks_on_node[node_rank]): raise ValueError\n"
                "    return sum(ranks_on_node[:node_rank]) + local_rank"
            ),
            "There is no node 2",
        ),
        (
            "a float",
            _checked("return sum(ranks_on_node[:node_rank]) / 1 + local_rank"),
            "returned a float, expected an int",
        ),
        (
            "the list is eaten",
            _checked(
                "total = local_rank\n"
                "    for _ in range(node_rank): total += ranks_on_node.pop(0)\n"
                "    return total"
            ),
            "changed the list that it was given",
        ),
        (
            "an error of another kind",
            _rank("raise NotImplementedError('only for equal nodes')"),
            "workers/exercise_00_1.py, line 3",
        ),
    ],
    "00.3": [
        ("algbw", _busbw(_KNOWN, "return size / seconds"), "Which factor makes it busbw?"),
        (
            "half an all-reduce",
            _busbw(_KNOWN, "return size / seconds * min(1, factors[collective] or 1) * share"),
            "An all-reduce is two collectives",
        ),
        (
            "all like all-reduce",
            _busbw(_KNOWN, "return size / seconds * 2 * share"),
            "That is the factor of all-reduce",
        ),
        (
            "bits",
            _busbw(_KNOWN, "return 8 * size / seconds * factors[collective]"),
            "Bits or bytes?",
        ),
        (
            "gigabytes",
            _busbw(_KNOWN, "return size / seconds * factors[collective] / 1e9"),
            "That is in GB/s",
        ),
        (
            "times the time",
            _busbw(_KNOWN, "return size * seconds * factors[collective]"),
            "Divide by the time",
        ),
        (
            "upside down",
            _busbw(_KNOWN, "return size / seconds / factors[collective]"),
            "upside down",
        ),
        (
            "a whole number",
            _busbw(_KNOWN, "return size // seconds * factors[collective]"),
            "returned 1331999, expected 1332000",
        ),
        (
            "four ranks at most",
            _busbw(_KNOWN, "return size / seconds * factors[collective] * (world_size < 5)"),
            "0.37, 7) returned 0, expected 35464036",
        ),
        (
            "an unknown name is 1",
            _busbw("return size / seconds * factors.get(collective, 1)"),
            'busbw("all_recude", 1, 1, 2) returned 1.0, expected a ValueError',
        ),
        (
            "an unknown name is a KeyError",
            _busbw("return size / seconds * factors[collective]"),
            "raised KeyError: 'all_recude', expected a ValueError",
        ),
    ],
}
