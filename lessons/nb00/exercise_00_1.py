"""00.1: which rank is it?"""

from collections.abc import Callable

from course_utils.checking.calls import refused
from course_utils.checking.compare import judge
from course_utils.checking.findings import observe
from course_utils.checking.values import as_number

TITLE = "which rank is it?"
PROVEN = (
    "every rank of clusters with 1 to 5 nodes of equal and unequal size",
    "a ValueError for a node or local rank that does not exist",
)
OURS = '''"""The rank of a process, from its node and its number there."""


def global_rank(node_rank: int, local_rank: int, ranks_on_node: list[int]) -> int:
    """The rank of process `local_rank` on node `node_rank`; node i has ranks_on_node[i] ranks."""
    if not 0 <= node_rank < len(ranks_on_node):
        raise ValueError(f"there is no node {node_rank}: there are {len(ranks_on_node)} nodes")
    if not 0 <= local_rank < ranks_on_node[node_rank]:
        raise ValueError(f"node {node_rank} has no local rank {local_rank}")
    return sum(ranks_on_node[:node_rank]) + local_rank  # all nodes before come first
'''
CLUSTERS = ([2, 2], [4, 4], [1, 3, 2], [4, 2, 8], [3], [2, 1, 5, 1, 4], [2, 0, 3])
NOBODY = (([2, 2], 0, 2), ([1, 3], 0, 1), ([2, 2], 2, 0), ([2, 2], 0, -1), ([2, 2], -1, 0))
NOBODY += (([3, 1], 1, 2), ([3, 1, 2], -2, 0), ([4], 1, 3), ([1, 2], 7, 7), ([2, 0, 3], 1, 0))


def cases(global_rank: Callable) -> None:
    """Every process of several clusters, and some beyond their ends."""
    for cluster in CLUSTERS:
        for node, ranks in enumerate(cluster):
            for local in range(ranks):
                look(global_rank, node, local, cluster)
    for cluster, node, local in NOBODY:
        hint = f"There is no node {node}."
        if 0 <= node < len(cluster):
            hint = f"Node {node} has {cluster[node]} ranks; local ranks count from 0."
        call = f"global_rank({node}, {local}, {cluster})"
        refused(call, global_rank, node, local, list(cluster), hint=hint)


def look(global_rank: Callable, node: int, local: int, cluster: list[int]) -> None:
    """One process."""

    def rank(*arguments):
        return as_number(global_rank(*arguments))

    found = observe(rank, node, local, list(cluster), names=("", "", "the list"))
    known, right = mistakes(cluster, node, local), sum(cluster[:node]) + local
    hint = "How many processes are on the nodes before this one?"
    call = f"global_rank({node}, {local}, {cluster})"
    judge(call, found, right, known, hint, kinds=("int",))


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


BEFORE = "sum(ranks_on_node[:node_rank])"
RANK = BEFORE + " + local_rank"
NODE = "if not 0 <= node_rank < len(ranks_on_node):"
LOCAL = "if not 0 <= local_rank < ranks_on_node[node_rank]:"

TEXT = '"""The rank of a process, from its node and its number there."""'
OWN_ERROR = "\nclass NoSuch(ValueError):\n    pass\n"
REPORT = "\nfrom nbtorchrun.worker import report\nreport(cluster=[2, 2], value=3)\n"

WRONG = [
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
        "only the examples are refused",
        NODE,
        "if (node_rank, len(ranks_on_node)) in ((2, 2), (-1, 2)):",
        "global_rank(-2, 0, [3, 1, 2])",
    ),
    (
        "a node without ranks has one",
        LOCAL,
        "if not 0 <= local_rank < max(1, ranks_on_node[node_rank]):",
        "global_rank(1, 0, [2, 0, 3]) returned 2, expected a ValueError",
    ),
    (
        "a tensor of floats",
        TEXT,
        "import torch",
        BEFORE,
        "torch.tensor(ranks_on_node[:node_rank]).sum() * 1.0",
        "returned a float, expected an int",
    ),
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
]
RIGHT = [
    (
        "values of its own, and an error of its own",
        TEXT,
        f"{TEXT}{REPORT}{OWN_ERROR}",
        'raise ValueError(f"there',
        'raise NoSuch(f"there',
        'raise ValueError(f"node',
        'raise NoSuch(f"node',
    ),
    ("numpy's numbers", "->", "numpys"),
    (
        "with a tensor",
        TEXT,
        "import torch",
        BEFORE,
        "torch.tensor(ranks_on_node)[:node_rank].sum()",
    ),
]
