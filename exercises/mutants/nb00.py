"""Wrong answers to 00.1 and 00.3, and right ones of another kind."""

from course_utils.checking.registry import find
from exercises.mutants.changed import changed

BEFORE = "sum(ranks_on_node[:node_rank])"
RANK = BEFORE + " + local_rank"
NODE = "if not 0 <= node_rank < len(ranks_on_node):"
LOCAL = "if not 0 <= local_rank < ranks_on_node[node_rank]:"
FACTOR = "factors[collective]"
KNOWN = "if collective not in factors:"
OWN_ERROR = "class NoSuch(ValueError):\n    pass\n\n\n"
REPORT = "\nfrom course_utils.worker import report\nreport(cluster=[2, 2], value=3)\n"

MUTANTS = {
    "00.1": [
        ("the local rank", RANK, "local_rank", "In yours, every node begins at rank 0"),
        (
            "all nodes like this one",
            BEFORE,
            "node_rank * ranks_on_node[node_rank]",
            "Are all nodes as large as this one?",
        ),
        (
            "all nodes like the first",
            BEFORE,
            "node_rank * ranks_on_node[0]",
            "Are all nodes as large as the first one?",
        ),
        (
            "one node too many",
            "[:node_rank]",
            "[: node_rank + 1]",
            "Is this node itself among those before it?",
        ),
        (
            "round robin",
            RANK,
            "local_rank * len(ranks_on_node) + node_rank",
            "Which number counts nodes",
        ),
        (
            "a formula for three nodes",
            BEFORE,
            "sum(ranks_on_node[:2][:node_rank])",
            "[2, 1, 5, 1, 4]) returned 3, expected 8",
        ),
        (
            "the error returned",
            'raise ValueError(f"node {node_rank} has no local rank {local_rank}")',
            "return ValueError",
            "You returned the error: raise it instead.",
        ),
        (
            "the error returned, with its text",
            'raise ValueError(f"node',
            'return ValueError(f"node',
            "You returned the error: raise it instead.",
        ),
        ("counted from 1", RANK, RANK + " + 1", "Does yours begin at 1?"),
        (
            "nobody is refused",
            NODE,
            "if False:",
            LOCAL,
            "if False:",
            "global_rank(0, 2, [2, 2]) returned 2, expected a ValueError",
        ),
        ("a node that is not there", NODE, "if False:", "There is no node 2"),
        ("a float", BEFORE, BEFORE + " / 1", "returned a float, expected an int"),
        (
            "the list is eaten",
            BEFORE,
            "sum(ranks_on_node.pop(0) for _ in range(node_rank))",
            "changed the list that it was given",
        ),
        (
            "an error of another kind",
            "\ndef global_rank(node_rank, local_rank, ranks_on_node):\n"
            "    raise NotImplementedError('only for equal nodes')\n",
            "workers/exercise_00_1.py, line 3",
        ),
    ],
    "00.3": [
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
            "an unknown name is a KeyError",
            KNOWN,
            "if False:",
            "raised KeyError: 'all_recude', expected a ValueError",
        ),
    ],
}

RIGHT = {
    "00.1": [
        (
            "values of its own, and an error of its own",
            OWN_ERROR + find("00.1").solution.replace("ValueError", "NoSuch") + REPORT,
        )
    ],
    "00.3": [
        (
            "float32, and an error of its own",
            "import numpy\n\n"
            + OWN_ERROR
            + changed(
                "00.3",
                "raise ValueError",
                "raise NoSuch",
                "size / seconds * factors[collective]",
                "numpy.float32(size / seconds * factors[collective])",
            ),
        )
    ],
}
