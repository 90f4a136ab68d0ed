"""Notebook 05, FSDP and ZeRO: gathering, memory, `fully_shard`, gradients and their norm."""

from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import expect, hint_for, plain
from course_utils.checking.failures import lonely, of_backward
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import is_number

RANKS = (2, 3, 4, 1)  # with 2 much is right that is wrong with 3; a rank alone may send nothing
TORCHS = ("all_gather_tensor_autograd", "_AllGather", "_AllGatherBase", "_ReduceScatter")
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


@exercise("05.1", "memory of each stage")
def check_05_1(my_bytes: Callable) -> list[str]:
    """Bytes for several stages, sizes and optimizers."""
    for case in MEMORY:
        names = ("stage", "parameters", "ranks", "width", "states")
        call = ", ".join(f"{name}={value}" for name, value in zip(names, case, strict=True))
        got = plain(called(f"my_bytes({call})", my_bytes, *case))
        hint = _memory_hint(got, *case)
        expect(f"my_bytes({call}) returned", got, memory(*case), otherwise=hint, tolerance=0)
    return [
        "stages 0 to 3 of SGD, momentum and Adam, in 8 to 64 bits, to the byte",
        "with padding, where the ranks do not divide the parameters",
    ]


def memory(
    stage: int, parameters: float, ranks: int, width: int, states: int, shard: float | None = None
) -> float:
    """Bytes on a rank between backward and step; ZeRO, section 5; `shard` is padded by default."""
    shard = -(-parameters // ranks) if shard is None else shard
    model, gradient, state = (shard if stage >= each else parameters for each in (3, 2, 1))
    return model * width + gradient * width + state * ((4 if width < 4 else 0) + 4 * states)


def _memory_hint(
    got: object, stage: int, parameters: int, ranks: int, width: int, states: int
) -> str:
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


@exercise("05.2", "gather and its gradient", file="exercise_05_2.py", without=TORCHS)
def check_05_2() -> list[str]:
    """Whole, gradient and every byte, for several sizes and dtypes."""

    def hint(ranks: int, message: str) -> str:
        if "must be contiguous" in message.splitlines()[0]:
            return "Autograd may give you one number, expanded. Which method makes it dense?"
        wrong = "forward was given n/N values. How many does backward return?"
        return wrong if "shape compatible" in message else of_backward(ranks, message)

    probe_each("probe_05_2.py", RANKS, hint=hint)
    return [
        "1 to 4 ranks, float32 and float64: the whole, and the shard of the averaged gradient",
        "one all-gather, one reduce-scatter, and the gradient left as it was",
    ]


@exercise("05.3", "fully_shard as it is used", file="exercise_05_3.py")
def check_05_3() -> list[str]:
    """What is wrapped, what is in memory, and two steps beside one process."""

    def hint(ranks: int, message: str) -> str:
        return "Which wrapping comes last?" if "Invariant encountered" in message else ""

    probe_each("probe_05_3.py", (2, 3, 4), hint=hint)
    return [
        "2 to 4 ranks, sizes that do not divide: every parameter is sharded and has values",
        "never whole while it is built, few blocks at once in forward; two steps of one process",
    ]


@exercise("05.4", "global gradient norm from shards", file="exercise_05_4.py")
def check_05_4() -> list[str]:
    """The norm on each rank, and what was sent for it."""
    question = "Does every rank come to the collective, one without a gradient too?"
    probe_each("probe_05_4.py", RANKS, hint=lonely(question))
    return [
        "1 to 4 ranks, with frozen parameters, ranks without any, and float16",
        "the same on each rank, with one collective of one number",
    ]


@exercise("05.5", "reduce-scatter with the right mean", file="exercise_05_5.py")
def check_05_5() -> list[str]:
    """The shard on each rank, with equal and uneven rows, and in float16."""
    probe_each("probe_05_5.py", RANKS)
    return [
        "1 to 4 ranks with equal, uneven and no rows, and sums beyond float16's range",
        "one reduce-scatter of the gradient's bytes, and the gradient left as it was",
    ]
