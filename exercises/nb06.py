"""Notebook 06, tensor parallel: f and g, column and row, a loss over sharded logits, q, k and v."""

from course_utils.checking.probes import probe, probe_each
from course_utils.checking.registry import exercise

RANKS = (2, 3, 4)
TORCHS = ("_functional_collectives", "parallelize_module", "DTensor", "loss_parallel")


@exercise("06.1", "f and g", file="exercise_06_1.py", without=TORCHS)
def check_06_1() -> list[str]:
    """Values and gradients on all ranks and on smaller groups, and what each pass sends."""
    probe_each("probe_06_1.py", RANKS)
    return [
        "2, 3 and 4 ranks, and smaller groups: values and gradients, also where x is used beside f",
        "f sends nothing forward, g nothing backward; neither changes what it is given",
    ]


@exercise("06.2", "column and row", file="exercise_06_2.py", without=TORCHS)
def check_06_2() -> list[str]:
    """Outputs and gradients beside the whole layer, and what each pass sends."""
    probe_each("probe_06_2.py", RANKS)
    return [
        "2, 3 and 4 ranks: outputs, and gradients of x, weight and bias, with and without a bias",
        "column: one all-reduce backward; row: one all-reduce forward; nothing else",
    ]


@exercise("06.3", "a loss over sharded logits", file="exercise_06_3.py", without=TORCHS)
def check_06_3() -> list[str]:
    """Losses and gradients beside those of all logits, large ones too, and what is sent."""
    probe_each("probe_06_3.py", RANKS)
    return [
        "2, 3 and 4 ranks: each position's loss and the gradient of each logit, also of large ones",
        "logits of minus infinity, of other tokens",
        "at most 4 values per position in collectives",
    ]


@exercise("06.4", "q, k and v side by side, by KV heads", file="exercise_06_4.py")
def check_06_4() -> list[str]:
    """The order of the rows, for weights and biases."""
    probe("probe_06_4.py", 1)
    return [
        "2 to 6 KV heads, 1 to 4 query heads each: every cut between KV heads keeps them together"
    ]
