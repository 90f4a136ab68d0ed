"""05.2: memory of each stage."""

from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import expect, hint_for
from course_utils.checking.values import is_number, plain

TITLE = "memory of each stage"
PROVEN = (
    "stages 0 to 3 of SGD, momentum and Adam, in 8 to 64 bits, to the byte",
    "with padding, where the ranks do not divide the parameters",
)
OURS = '''"""The memory of ZeRO's stages."""


def my_bytes(stage: int, parameters: int, ranks: int, width: int, states: int) -> int:
    """Bytes of parameters, gradients and optimizer state on a rank; stage 0 is DDP."""
    shard = -(-parameters // ranks)  # rounded up: padded
    master = 4 if width < 4 else 0
    return (
        (shard if stage >= 3 else parameters) * width
        + (shard if stage >= 2 else parameters) * width
        + (shard if stage >= 1 else parameters) * (master + 4 * states)
    )
'''
MEMORY = [  # stage, parameters, ranks, width, states
    (0, 1000, 4, 2, 1),
    (0, 1000, 4, 2, 2),
    (1, 1000, 4, 2, 2),
    (2, 1000, 4, 2, 2),
    (3, 1000, 4, 2, 2),
    (1, 1000, 4, 4, 2),
    (3, 1000, 4, 4, 1),
    (2, 1000, 4, 2, 0),
    (0, 1000, 4, 4, 0),
    (1, 1000, 4, 1, 3),
    (3, 1000, 4, 8, 2),
    (2, 1000, 6, 8, 3),
    (1, 10, 3, 2, 2),
    (2, 10, 3, 2, 2),
    (3, 10, 3, 4, 2),
    (3, 5, 8, 2, 2),
    (1, 7_000_000_001, 64, 2, 2),
]


def cases(my_bytes: Callable) -> None:
    """Bytes for several stages, sizes and optimizers."""
    for case in MEMORY:
        names = ("stage", "parameters", "ranks", "width", "states")
        call = ", ".join(f"{name}={value}" for name, value in zip(names, case, strict=True))
        got = plain(called(f"my_bytes({call})", my_bytes, *case))
        hint = question(got, *case)
        expect(f"my_bytes({call}) returned", got, memory(*case), otherwise=hint, tolerance=0)


def memory(
    stage: int, parameters: float, ranks: int, width: int, states: int, shard: float | None = None
) -> float:
    """Bytes on a rank between backward and step; ZeRO, section 5; `shard` is padded by default."""
    shard = -(-parameters // ranks) if shard is None else shard
    model, gradient, state = (shard if stage >= each else parameters for each in (3, 2, 1))
    return model * width + gradient * width + state * ((4 if width < 4 else 0) + 4 * states)


def question(got: object, stage: int, parameters: int, ranks: int, width: int, states: int) -> str:
    """The question that fits a wrong number."""
    if not is_number(got):
        return "A whole number of bytes."
    case = parameters, ranks, width, states
    right, shard = memory(stage, *case), -(-parameters // ranks)
    state = shard if stage else parameters
    others = [(n, memory(n, *case)) for n in range(4)]
    uneven = "All shards are equally long: how long, if the ranks do not divide?"
    mistakes = [
        (uneven, memory(stage, *case, parameters // ranks)),
        (uneven, memory(stage, *case, parameters / ranks)),
        (uneven, int(memory(stage, *case, parameters / ranks))),
        (
            "Only what is sharded is padded. What does every rank hold as a whole?",
            memory(stage, shard * ranks, *case[1:]),
        ),
        *((f"That is stage {n}. What is sharded in stage {stage}?", at) for n, at in others),
        ("On what does the optimizer work, if the parameters have 16 bits?", right - 4 * state),
        ("Who needs a copy in 32 bits of what has 32 bits?", right + 4 * state),
        (
            "In which precision does the optimizer keep its values?",
            right - (4 - width) * states * state,
        ),
        ("That is what all ranks hold together.", right * ranks),
    ]
    known = [(question, wrong) for question, wrong in mistakes if wrong != right]
    otherwise = "Three parts: parameters, gradients, optimizer. Which are sharded in this stage?"
    return hint_for(got, known, otherwise, 0) if got != right else "A whole number, an int."


WRONG = [
    (
        "no master copy",
        "(master + 4 * states)",
        "4 * states",
        "On what does the optimizer work",
    ),
    (
        "a copy of 32 bits too",
        "4 if width < 4 else 0",
        "4",
        "Who needs a copy in 32 bits",
    ),
    ("states in 16 bits", "4 * states", "width * states", "In which precision"),
    (
        "not padded",
        "-(-parameters // ranks)",
        "parameters // ranks",
        "how long, if the ranks do not divide?",
    ),
    (
        "stage 2 for stage 1",
        "stage >= 2",
        "stage >= 1",
        "That is stage 2. What is sharded in stage 1?",
    ),
    (
        "parameters never sharded",
        "(shard if stage >= 3 else parameters)",
        "parameters",
        "That is stage 2. What is sharded in stage 3?",
    ),
    (
        "the master copy is not sharded",
        "(master + 4 * states)",
        "4 * states + parameters * master",
        "Which are sharded in this stage?",
    ),
    (
        "all ranks together",
        "return (",
        "return ranks * (",
        "what all ranks hold together",
    ),
    ("more than any float", "->", "lambda n: 10**400 * n", "Return a number"),
    (
        "one value more, to be sure",
        "-(-parameters // ranks)",
        "parameters // ranks + 1",
        "Which are sharded in this stage?",
    ),
    ("nothing", "return (", "_ = (", "Every call needs a result"),
]
RIGHT = [
    ("numpy's numbers", "->", "numpys"),
    ("a float, which is whole", "->", "float"),
    ("an exact fraction", "->", "lambda n: __import__('fractions').Fraction(n)"),
]
