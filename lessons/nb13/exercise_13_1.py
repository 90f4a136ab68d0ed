"""13.1: name the culprit from stacks."""

from collections.abc import Callable, Sequence
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, plain
from course_utils.checking.values import is_number, listed
from nbtorchrun.diagnosis.stacks import Frame

TITLE = "name the culprit from stacks"
PROVEN = (
    "runs of 2 to 4 ranks, with DDP and without: who sleeps, reads, has ended or waits elsewhere,",
    "with its own innermost line; and nobody where nobody differs",
)
OURS = '''"""Whom to blame for a run that is stuck, from the stacks of its ranks."""

from collections import Counter
from pathlib import Path

INSIDE = (
    "/torch/distributed/",  # a call of yours
    "/torch/autograd/graph.py",  # backward, where DDP adds up gradients
    "/torch/nn/parallel/distributed.py",  # forward, where DDP sends buffers
)


def waits(stack) -> bool:
    """Whether a rank is inside a collective: one of yours, or one of DDP's."""
    return bool(stack) and any(part in stack[0].file for part in INSIDE)


def culprit(stacks, script):
    """The rank to blame and the line of `script` where it stands: (rank, line), or None."""
    for rank, stack in enumerate(stacks):
        if stack is None:
            return rank, None
    lines = [
        next((frame.line for frame in stack if Path(frame.file).name == script), None)
        for stack in stacks
    ]
    waiting = [waits(stack) for stack in stacks]
    if any(waiting) and not all(waiting):
        rank = waiting.index(False)
        return rank, lines[rank]
    counts = Counter(lines)
    odd = [rank for rank, line in enumerate(lines) if counts[line] == 1]
    if all(waiting) and len(counts) == 2 and len(odd) == 1:
        return odd[0], lines[odd[0]]
    return None
'''
Where = Sequence[tuple[str, int]]  # (file, line), the innermost call first
TORCH = "/site/torch/distributed/distributed_c10d.py"
WAITS = [(TORCH, 4181), ("/site/torch/distributed/c10d_logger.py", 83)]
BACKWARD = [  # where the victims of DDP stand: its collectives are called from C++
    ("/site/torch/autograd/graph.py", 1113),
    ("/site/torch/autograd/__init__.py", 395),
    ("/site/torch/_tensor.py", 623),
]
BUFFERS = [("/site/torch/nn/parallel/distributed.py", 2148)]  # its broadcast is C++, too
RECORD = ("/site/torch/distributed/elastic/multiprocessing/errors/__init__.py", 362)
READS = [("/site/torch/utils/data/dataloader.py", 700), ("/lib/python3.11/queue.py", 180)]


def at(line: int, *above: tuple[str, int], below: int = 90) -> Where:
    """A stack that was in `line` of the script, called from its line `below`."""
    return [*above, ("/home/you/SCRIPT", line), ("/home/you/SCRIPT", below)]


# What happened, the stack of each rank, the right answer, the question for a wrong one.
ENDED = "A rank that has ended has no stack at all. Which rule comes first?"
NOT_WAITING = "The ranks in torch.distributed wait for somebody. Which rank is not in there?"
IN_BACKWARD = "Under DDP the victims stand in autograd's engine. Does your rule ask `waits`?"
IN_FORWARD = "With buffers, DDP's victims stand in its forward. Does your rule ask `waits`?"
INNERMOST = "The first frame of `script` in the stack is the innermost one."
OTHER_FILE = "Compare the file's name, not how the path ends: my_train.py is another file."
ODD = "All wait. Which rank waits in another line than all the others?"
NOBODY = "Here no rank differs from the others, so there is nobody to blame."
TWO = "Here two ranks differ from the rest, so no rule names one of them."
EACH = "Of two ranks, each differs from the other, so no rule names one of them."
SEVERAL = "The same rule fits two ranks here: name the first of them."
OTHER_SCRIPT = "In train.py you are right. Where does your answer get the script's name from?"
INNER_FRAME = "A rank waits if its innermost frame is in there. What do frames farther out say?"
NO_LINE = "No frame of this stack is in `script`: then the line is None."
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
            [("/home/you/my_SCRIPT", 7), ("/home/you/SCRIPT", 24)],
            at(31, *WAITS),
            at(31, *WAITS),
        ],
        (0, 24),
        OTHER_FILE,
    ),
    (
        "3 ranks with DDP, rank 2 sleeps",
        [at(31, *BACKWARD), at(31, *BACKWARD), at(24)],
        (2, 24),
        IN_BACKWARD,
    ),
    ("4 ranks, rank 1 has ended", [at(31, *WAITS), None, at(31, *WAITS), at(24)], (1, None), ENDED),
    ("2 ranks, rank 0 has ended", [None, at(31, *WAITS)], (0, None), ENDED),
    ("3 ranks, ranks 1 and 2 have ended", [at(31, *WAITS), None, None], (1, None), SEVERAL),
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
    (
        "4 ranks, in three collectives",
        [at(31, *WAITS), at(35, *WAITS), at(31, *WAITS), at(38, *WAITS)],
        None,
        TWO,
    ),
    ("2 ranks, in two collectives", [at(31, *WAITS), at(35, *WAITS)], None, EACH),
    ("3 ranks, ranks 1 and 2 sleep", [at(31, *WAITS), at(24), at(20)], (1, 24), SEVERAL),
    (
        "2 ranks, rank 1 has not come to the script",
        [at(31, *WAITS), [("/lib/python3.11/runpy.py", 88)]],
        (1, None),
        NO_LINE,
    ),
    (
        "3 ranks with DDP, rank 1 is in the barrier after the loop",
        [at(31, *BACKWARD), at(38, *WAITS), at(31, *BACKWARD)],
        (1, 38),
        IN_BACKWARD,
    ),
    (
        "2 ranks inside torchrun's @record, rank 1 sleeps",
        [[*at(31, *WAITS), RECORD], [*at(24), RECORD]],
        (1, 24),
        INNER_FRAME,
    ),
    (
        "2 ranks with DDP, rank 1 sleeps in a gradient hook",
        [at(31, *BACKWARD), [("/home/you/SCRIPT", 12), *at(31, *BACKWARD)]],
        (1, 12),
        INNER_FRAME,
    ),
    (
        "3 ranks with DDP and BatchNorm, rank 0 sleeps",
        [at(24), at(31, *BUFFERS), at(31, *BUFFERS)],
        (0, 24),
        IN_FORWARD,
    ),
    (
        "2 ranks with DDP, one of them in another collective",
        [at(31, *BACKWARD), at(38, *WAITS)],
        None,
        EACH,
    ),
]


def cases(culprit: Callable) -> None:
    """Runs of 2 to 4 ranks: who sleeps, who has ended, who waits elsewhere, and nobody."""
    for script in ("train.py", "zoo.py"):
        for what, given, right, hint in CASES:
            stacks = [where and frames(where, script) for where in given]
            hint = hint if script == "train.py" else OTHER_SCRIPT
            look(culprit, f"{what} (in {script})", stacks, script, right, hint)


def look(
    culprit: Callable, call: str, stacks: list[Any], script: str, right: Any, hint: str
) -> None:
    """One run that is stuck."""
    answer = called(call, culprit, stacks, script, hint=hint)
    pair = listed(answer)
    if answer is not None and (pair is None or len(pair) != 2):
        said = f"{call}: you returned {answer!r}, expected {right!r}"
        raise Wrong(said, "Return a pair, the rank and the line; None for nobody.")
    if not same(pair, right):
        if pair and right and plain(pair[0]) == right[0] and hint in (NOT_WAITING, ODD):
            hint = INNERMOST  # only the line is wrong
        raise Wrong(f"{call}: you returned {answer!r}, expected {right!r}", hint)


def frames(where: Where, script: str) -> list[Frame]:
    """The stack of a rank that runs that script."""
    return [Frame(file.replace("SCRIPT", script), line, "f") for file, line in where]


def same(pair: list[Any] | None, right: Any) -> bool:
    """Judged by value: a list, or NumPy's numbers, are as good as a tuple of ints."""
    if right is None or pair is None:
        return pair is right
    return all(
        got is None if wanted is None else is_number(got) and got == wanted
        for got, wanted in zip(plain(pair), right, strict=True)
    )


SCRIPT = "Path(frame.file).name == script"
LINE = f"next((frame.line for frame in stack if {SCRIPT}), None)"
RULE_2 = "if any(waiting) and not all(waiting):"
RULE_3 = "if all(waiting) and len(counts) == 2 and len(odd) == 1:"

WRONG = [
    (
        "the one that waits",
        "waiting.index(False)",
        "waiting.index(True)",
        "Which rank is not in there?",
    ),
    (
        "how the path ends",
        SCRIPT,
        "frame.file.endswith(script)",
        "my_train.py is another file",
    ),
    (
        "the outermost line",
        "for frame in stack if",
        "for frame in reversed(stack) if",
        "is the innermost one",
    ),
    ("the innermost frame of all", LINE, "stack[0].line", "is the innermost one"),
    (
        "ended last",
        "if stack is None:\n            return rank, None",
        "pass",
        "in stack if",
        "in stack or [] if",
        "waits(stack) for",
        "bool(stack) and waits(stack) for",
        RULE_2,
        "if any(waiting) and not all(waiting) and None not in stacks:",
        "A rank that has ended has no stack at all",
    ),
    (
        "torch.distributed alone",
        '    "/torch/autograd/graph.py",  # backward, where DDP adds up gradients\n',
        "",
        "stand in autograd's engine",
    ),
    (
        "any frame",
        "bool(stack) and any(part in stack[0].file for part in INSIDE)",
        "any(part in frame.file for frame in stack for part in INSIDE)",
        "innermost frame is in there",
    ),
    ("no third rule", RULE_3, "if False:", "All wait."),
    (
        "somebody must be guilty",
        "return None",
        "return 0, lines[0]",
        "nobody to blame",
    ),
    (
        "one of two",
        RULE_3,
        "odd = odd or [3] * (len(counts) == 2)\nif all(waiting) and odd:",
        "two ranks differ",
    ),
    ("one of the only two", "len(odd) == 1", "odd", "each differs from the other"),
    (
        "its own script's name",
        SCRIPT,
        'Path(frame.file).name == "train.py"',
        "the script's name from",
    ),
    (
        "the last that does not wait",
        "waiting.index(False)",
        "max(r for r, w in enumerate(waiting) if not w)",
        "name the first",
    ),
    (
        "a line for every stack",
        LINE,
        LINE.replace("next(", "next(iter([*(").replace(", None)", "), stack[-1].line]))"),
        "the line is None",
    ),
    ("a rank alone", "->", "lambda pair: pair and pair[0]", "Return a pair"),
]
RIGHT = [
    ("a list", "->", "lambda pair: pair and list(pair)"),
    ("a generator", "->", "lambda pair: pair and (each for each in pair)"),
    ("numpy's numbers", "->", "numpys"),
]
