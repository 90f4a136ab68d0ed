"""Notebook 05, FSDP and ZeRO: shards, their memory, gradients and their norm."""

import math
from collections.abc import Callable
from typing import Any

from course_utils.exercises.calls import called
from course_utils.exercises.checking import Wrong, exercise, probe

RANKS = (2, 3, 4, 1)  # with 2 much is right that is wrong with 3; a rank alone may send nothing
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
    (1, 10, 3, 2, 2),
    (2, 10, 3, 2, 2),
    (3, 10, 3, 4, 2),
    (3, 5, 8, 2, 2),
    (1, 7_000_000_001, 64, 2, 2),
]


@exercise("05.1", "flat shard and unshard with padding", file="exercise_05_1.py")
def check_05_1() -> list[str]:
    """Parts and tensors of several shapes on several numbers of ranks."""
    for ranks in RANKS:
        for task, look in (("shard", _check_shard), ("unshard", _check_unshard)):
            try:
                reports = probe("probe_05_1.py", ranks, task, timeout=60)
            except Wrong as wrong:
                raise Wrong(f"{task}, {wrong.message}", wrong.hint) from None
            for found in reports:
                look(ranks, found)
    return [
        "1 to 4 ranks, tensors of 0 to 3 dimensions, empty ones too: parts of one size, no longer",
        "than need be, and the same tensors again; one all-gather, and a part holds no more memory",
    ]


def _where(ranks: int, found: dict[str, Any]) -> str:
    shapes = ", ".join(str(tuple(shape)) for shape in found["shapes"])
    return f"{_ranks(ranks)}, shapes {shapes}: rank {found['rank']}"


def _check_shard(ranks: int, found: dict[str, Any]) -> None:
    where, expected = _where(ranks, found), found["expected"]
    if "part" not in found or len(found["shape"]) != 1:
        got = f"a tensor of shape {found['shape']}" if "part" in found else f"a {found['kind']}"
        raise Wrong(f"{where}: shard returned {got}, expected a tensor of one dimension")
    if found["part"] != expected:
        said = f"{where}: shard returned {_numbers(found['part'])}, expected {_numbers(expected)}"
        raise Wrong(said, _shard_hint(found["part"], expected, ranks))
    if found["dtype"] != found["wanted"]:
        raise Wrong(
            f"{where}: shard returned {found['dtype']}, expected {found['wanted']}",
            "In which dtype is your padding?",
        )
    if found["held"] > len(expected):
        raise Wrong(
            f"{where}: the part has {len(expected)} values, and holds memory for {found['held']}",
            "A view keeps the whole alive. What does a rank need of the others' parts?",
        )
    if found["sent"]:
        raise Wrong(
            f"{where}: shard sent something",
            "Every rank has the tensors. Why should it ask another?",
        )


def _shard_hint(got: list[float], expected: list[float], ranks: int) -> str:
    """The question that fits a wrong part."""
    if len(got) > len(expected):
        return "Longer than need be. How many values has the last rank, at the least?"
    if len(got) < len(expected):
        return "All parts are equally long, the last one too. Which values are missing?"
    if sorted(got) != got and 0 not in got:
        return "In which order do the values of a matrix come, however it lies in memory?"
    if 0 in got and 0 not in expected and set(got) & set(expected):
        return "Where do the zeros go: at the end of each tensor, of each part, or of all?"
    if len(got) > 1 and got[1] - got[0] == ranks:
        return "Dealt out like cards. A part is a piece without gaps: why is that of use?"
    return "Write down the flat tensor with its padding, and cut it. Which piece is this rank's?"


def _check_unshard(ranks: int, found: dict[str, Any]) -> None:
    where, expected = _where(ranks, found), found["expected"]
    shapes = found["shapes"]
    if found["whole"] is None:
        raise Wrong(f"{where}: unshard returned a {found['kind']}, expected a list of tensors")
    if found["shapes_got"] != shapes:
        got = ", ".join(str(tuple(shape)) for shape in found["shapes_got"])
        hint = "A tensor of shape () has one value, one of shape (0,) none. Where is the padding?"
        raise Wrong(f"{where}: unshard returned the shapes {got}", hint)
    if found["whole"] != expected:
        raise Wrong(
            f"{where}: unshard returned {found['whole']}, expected {expected}",
            "Are all parts in it, in the order of the ranks, and the zeros left out?",
        )
    allowed = [{"all_gather": 1}, {}] if ranks == 1 else [{"all_gather": 1}]
    if found["collectives"] not in allowed or found["messages"]:
        names = ", ".join(f"{n} {name}" for name, n in found["collectives"].items()) or "nothing"
        raise Wrong(
            f"{where}: unshard used {names}, {found['messages']} messages; expected 1 all_gather",
            "Which collective gives everybody all parts?",
        )


@exercise("05.2", "memory of each stage")
def check_05_2(my_bytes: Callable) -> list[str]:
    """Bytes for several stages, sizes and optimizers."""
    for case in MEMORY:
        names = ("stage", "parameters", "ranks", "width", "states")
        call = ", ".join(f"{name}={value}" for name, value in zip(names, case, strict=True))
        got = called(f"my_bytes({call})", my_bytes, *case)
        expected = memory(*case)
        if got != expected:
            said = f"my_bytes({call}) returned {got}, expected {expected}"
            raise Wrong(said, _memory_hint(got, *case))
    return [
        "stages 0 to 3 of SGD, momentum and Adam, in 16 and in 32 bits, to the byte",
        "with padding, where the ranks do not divide the parameters",
    ]


def memory(
    stage: int, parameters: int, ranks: int, width: int, states: int, padded: bool = True
) -> int:
    """Bytes on a rank between backward and step; ZeRO, section 5, with padding."""
    shard = -(-parameters // ranks) if padded else parameters // ranks
    model, gradient, state = (shard if stage >= each else parameters for each in (3, 2, 1))
    return model * width + gradient * width + state * ((4 if width < 4 else 0) + 4 * states)


def _memory_hint(got: Any, stage: int, parameters: int, ranks: int, width: int, states: int) -> str:
    """The question that fits a wrong number; the mistakes are tried one after another."""
    if not isinstance(got, (int, float)):
        return "A whole number of bytes."
    case = parameters, ranks, width, states
    state = -(-parameters // ranks) if stage else parameters
    if parameters % ranks and abs(got - memory(stage, *case)) < 2 * (width * 2 + 4 * states + 4):
        return "Almost. All shards are equally long: how long, if the ranks do not divide?"
    for other in range(4):
        if other != stage and got == memory(other, *case):
            return f"That is stage {other}. What is sharded in stage {stage}?"
    right = memory(stage, *case)
    if width < 4 and right - got == 4 * state:
        return "On what does the optimizer work, if the parameters have 16 bits?"
    if width >= 4 and got - right == 4 * state:
        return "Who needs a copy in 32 bits of what has 32 bits?"
    if states and (right - got) == (4 - width) * states * state:
        return "In which precision does the optimizer keep its values?"
    if got == right * ranks:
        return "That is what all ranks hold together."
    return "Three parts: parameters, gradients, optimizer. Which are sharded in this stage?"


@exercise("05.3", "reduce-scatter with the right mean", file="exercise_05_3.py")
def check_05_3() -> list[str]:
    """The shard on each rank, with equal and uneven rows, and in float16."""
    for ranks in RANKS:
        for found in probe("probe_05_3.py", ranks, timeout=60):
            _check_mean(ranks, found)
    return [
        "1 to 4 ranks with equal and uneven rows, and sums beyond float16's range",
        "one reduce-scatter, and the gradient left as it was",
    ]


def _check_mean(ranks: int, found: dict[str, Any]) -> None:
    rows = ", ".join(map(str, found["rows"]))
    where = f"{_ranks(ranks)} with {rows} rows, {found['case']}: rank {found['rank']}"
    got, expected = found["answer"], found["expected"]
    if got is None:
        raise Wrong(f"{where} returned a {found['kind']}, expected a tensor")
    if len(got) != len(expected) or not all(map(_close, got, expected)):
        said = f"{where} returned {_numbers(got)}, expected {_numbers(expected)}"
        raise Wrong(said, _mean_hint(got, found, ranks))
    if found["dtype"] != found["wanted"]:
        raise Wrong(f"{where} returned {found['dtype']}, expected {found['wanted']}")
    if found["touched"]:
        raise Wrong(
            f"{where} changed the gradient that it was given",
            "Whose tensor is it? Divide a new one.",
        )
    allowed = [["reduce_scatter"], []] if ranks == 1 else [["reduce_scatter"]]
    if found["large"] not in allowed or len(found["small"]) > 1:
        used = ", ".join(found["large"] + [f"{name} of a number" for name in found["small"]])
        raise Wrong(
            f"{where} used {used or 'nothing'}; expected one reduce_scatter for the gradient, and "
            "at most one collective of a number",
            "A shard is all that this rank needs. Which collective gives it just that?",
        )


def _mean_hint(got: list[float], found: dict[str, Any], ranks: int) -> str:
    """The question that fits a wrong shard."""
    expected = found["expected"]
    if len(got) != len(expected):
        return "A shard is an N-th of the gradient. How long is yours?"
    if any(not math.isfinite(each) for each in got):
        return "Beyond 65504 a float16 is infinite. When do you divide: before the sum or after?"
    if all(_close(a, b) for a, b in zip(got, found["plain"], strict=True)):
        return "That is the mean of the ranks' means. Whose rows weigh too much in it?"
    if all(_close(a, b * ranks) for a, b in zip(got, found["plain"], strict=True)):
        return "That is the sum over the ranks. What makes it a mean?"
    if all(_close(a, b) for a, b in zip(got, found["own"], strict=True)):
        return "That is this rank's own. Who tells it of the others?"
    ratios = [a / b for a, b in zip(got, expected, strict=True)]
    if all(_close(each, ratios[0]) for each in ratios):
        return f"{ratios[0]:.4g} times too large. By which number do you divide?"
    return "Which piece of the flat gradient is this rank's? And each rank's weight in the mean?"


@exercise("05.4", "global gradient norm from shards", file="exercise_05_4.py")
def check_05_4() -> list[str]:
    """The norm on each rank, and what was sent for it."""
    for ranks in RANKS:
        try:
            reports = probe("probe_05_4.py", ranks, timeout=60, stall=15)
        except Wrong as wrong:
            question = "Does every rank come to the collective, one without a gradient too?"
            raise Wrong(wrong.message, wrong.hint or question * (ranks > 1)) from None
        for found in reports:
            _check_norm(ranks, found)
    return [
        "1 to 4 ranks, with frozen parameters, ranks without any, and float16",
        "the same on each rank, with one collective of one number",
    ]


def _check_norm(ranks: int, found: dict[str, Any]) -> None:
    where, got = f"{_ranks(ranks)}, {found['case']}: rank {found['rank']}", found["answer"]
    if got is None:
        raise Wrong(
            f"{where} returned a {found['kind']}, expected a float",
            "Every rank needs the number, as a plain Python number: what does yours return there?",
        )
    if not _close(got, found["expected"], 1e-5):
        said = f"{where} returned {got:.6g}, expected {found['expected']:.6g}"
        raise Wrong(said, _norm_hint(got, found))
    if found["touched"]:
        raise Wrong(f"{where} changed a shard", "They are gradients: the optimizer needs them yet.")
    if found["collectives"] not in ([1, 0] if ranks == 1 else [1]) or found["bytes"] > 8:
        raise Wrong(
            f"{where} took part in {found['collectives']} collectives with {found['bytes']} bytes, "
            "expected 1 with one number",
            "Which one number of a rank is all that the others need to know?",
        )


def _norm_hint(got: float, found: dict[str, Any]) -> str:
    """The question that fits a wrong norm."""
    if not math.isfinite(got):
        return "In which dtype do you square? The square of 300 is beyond float16."
    mistakes = {
        "own": "That is this rank's own. Who tells it of the others?",
        "added": "Norms do not add up; their squares do.",
        "squared": "That is the square of the norm.",
        "average": "Averaged, where the ranks hold different values: what is to be done with them?",
    }
    for kind, hint in mistakes.items():
        if _close(got, found[kind], 1e-5):
            return hint
    return "Square, add up on each rank, add up over the ranks, take the root: in this order."


def _ranks(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def _close(one: float, other: float, tolerance: float = 2e-3) -> bool:
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9)


def _numbers(values: list[float]) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"
