"""Notebook 12, slow or stuck: the culprit among stacks, lateness, FLOPs, and a slow script."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, plain
from course_utils.checking.probes import probe
from course_utils.checking.registry import exercise
from course_utils.checking.values import is_number

Where = Sequence[tuple[str, int]]  # (file, line), the innermost call first
TORCH = "/site/torch/distributed/distributed_c10d.py"
WAITS = [(TORCH, 4181), ("/site/torch/distributed/c10d_logger.py", 83)]
READS = [("/site/torch/utils/data/dataloader.py", 700), ("/lib/python3.11/queue.py", 180)]


def at(line: int, *above: tuple[str, int], below: int = 90) -> Where:
    """A stack that was in `line` of train.py, called from its line `below`."""
    return [*above, ("/home/you/train.py", line), ("/home/you/train.py", below)]


# What happened, the stack of each rank, the right answer, the question for a wrong one.
ENDED = "A rank that has ended has no stack at all. Which rule comes first?"
NOT_WAITING = "The ranks in torch.distributed wait for somebody. Which rank is not in there?"
INNERMOST = "The first frame of `script` in the stack is the innermost one."
OTHER_FILE = "Compare the file's name, not how the path ends: my_train.py is another file."
ODD = "All wait. Which rank waits in another line than all the others?"
NOBODY = "Here no rank differs from the others, so there is nobody to blame."
TWO = "Here two ranks differ from the rest, so no rule names one of them."
CASES: list[tuple[str, list[Where | None], Any, str]] = [
    ("2 ranks, rank 1 sleeps", [at(31, *WAITS), at(24)], (1, 24), NOT_WAITING),
    ("2 ranks, rank 0 sleeps", [at(24), at(31, *WAITS)], (0, 24), NOT_WAITING),
    (
        "3 ranks, rank 2 waits for its loader",
        [at(31, *WAITS), at(31, *WAITS), at(20, *READS)],
        (2, 20),
        INNERMOST,
    ),
    (
        "3 ranks, rank 0 is in a helper of another file",
        [
            [("/home/you/my_train.py", 7), ("/home/you/train.py", 24)],
            at(31, *WAITS),
            at(31, *WAITS),
        ],
        (0, 24),
        OTHER_FILE,
    ),
    ("4 ranks, rank 1 has ended", [at(31, *WAITS), None, at(31, *WAITS), at(24)], (1, None), ENDED),
    ("2 ranks, rank 0 has ended", [None, at(31, *WAITS)], (0, None), ENDED),
    (
        "4 ranks, rank 3 is in another collective",
        [at(31, *WAITS), at(31, *WAITS), at(31, *WAITS), at(35, *WAITS)],
        (3, 35),
        ODD,
    ),
    (
        "3 ranks, rank 0 is in another collective",
        [at(35, *WAITS), at(31, *WAITS), at(31, *WAITS)],
        (0, 35),
        ODD,
    ),
    (
        "3 ranks, all in line 31, called from two lines",
        [at(31, *WAITS, below=90), at(31, *WAITS, below=80), at(31, *WAITS, below=90)],
        None,
        NOBODY,
    ),
    ("3 ranks, all wait in one line", [at(31, *WAITS)] * 3, None, NOBODY),
    ("3 ranks, nobody waits", [at(24), at(25), at(25)], None, NOBODY),
    (
        "4 ranks, two and two in two collectives",
        [at(31, *WAITS), at(35, *WAITS), at(31, *WAITS), at(35, *WAITS)],
        None,
        TWO,
    ),
]


@exercise("12.1", "name the culprit from stacks")
def check_12_1(culprit: Callable) -> list[str]:
    """Runs of 2 to 4 ranks: who sleeps, who has ended, who waits elsewhere, and nobody."""
    for what, given, right, hint in CASES:
        stacks = [where and _frames(where) for where in given]
        answer = called(what, culprit, stacks, "train.py")
        pair = isinstance(answer, (tuple, list)) and len(answer) == 2
        if not (pair or answer is None):
            said = f"{what}: you returned {answer!r}, expected {right!r}"
            raise Wrong(said, "Return a pair, the rank and the line; None for nobody.")
        if not _same(answer, right):
            if hint in (NOT_WAITING, ODD) and answer and answer[0] == right[0]:
                hint = INNERMOST  # only the line is wrong
            raise Wrong(f"{what}: you returned {answer!r}, expected {right!r}", hint)
    return [
        f"{len(CASES)} runs of 2 to 4 ranks: the rank that sleeps, reads, has ended or waits",
        "elsewhere, with its own innermost line; and nobody where nobody differs",
    ]


def _frames(where: Where) -> list[SimpleNamespace]:
    return [SimpleNamespace(file=f, line=line, function="f") for f, line in where]


def _same(answer: Any, right: Any) -> bool:
    """Judged by value: a list, or NumPy's numbers, are as good as a tuple of ints."""
    if right is None or answer is None:
        return answer is right
    return all(
        got is None if wanted is None else is_number(got) and got == wanted
        for got, wanted in zip(plain(answer), right, strict=True)
    )


@exercise("12.2", "lateness from timestamps", file="exercise_12_2.py")
def check_12_2() -> list[str]:
    """Times of 2, 3 and 4 ranks, some made and some measured, and times that cannot be."""
    probe("probe_12_2.py", 1)
    return [
        "2, 3 and 4 ranks, 1 to 7 collectives; lists and arrays: the seconds after the first rank",
        "shapes that differ, and a rank that leaves before it enters: a ValueError",
    ]


@exercise("12.3", "the FLOPs of a step", file="exercise_12_3.py", without=("FlopCounterMode",))
def check_12_3() -> list[str]:
    """Formula against PyTorch's counter, on several models, batches and lengths."""
    probe("probe_12_3.py", 1)
    return [
        "6 models, batches and lengths, config as a dict and as an object:",
        "what FlopCounterMode counts, to the last operation, with and without recomputation",
    ]


@exercise("12.4", "twice as fast", file="exercise_12_4.py")
def check_12_4() -> list[str]:
    """The losses of the slow training, in at most half its time, measured in turn."""
    probe("probe_12_4.py", 1)
    return [
        "122 images, 10 epochs, 5 rounds with other images: losses and weights of slow_training",
        "in at most half its time: the fastest round of each, measured in turn",
    ]
