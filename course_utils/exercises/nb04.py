"""Notebook 04, ring all-reduce: its two halves, its cost, and one that deadlocks."""

import math
from collections.abc import Callable
from typing import Any

from course_utils.exercises.calls import called
from course_utils.exercises.checking import Wrong, exercise, probe

RANKS = (2, 3, 4, 5, 1)  # with 2 ranks left is right
HANGS = "Who receives while everyone sends? Begin both before you wait for either."
PROVEN = "1 to 5 ranks, 0 to 13 values: every value right, also where N does not divide"


@exercise("04.1", "ring reduce-scatter", file="exercise_04_1.py")
def check_04_1() -> list[str]:
    """The finished chunk of each rank, and every message sent for it."""
    _check_on_all_ranks("reduce_scatter", messages=1)
    return [
        PROVEN,
        "N - 1 messages a rank to one neighbour, none larger than a chunk, and no collective",
    ]


@exercise("04.2", "ring all-gather", file="exercise_04_2.py")
def check_04_2() -> list[str]:
    """The whole tensor on each rank, and every message sent for it."""
    _check_on_all_ranks("all_gather", messages=1)
    return [
        PROVEN,
        "N - 1 messages a rank to one neighbour, none larger than a chunk, and no collective",
    ]


@exercise("04.4", "a ring that deadlocks", file="exercise_04_4.py")
def check_04_4() -> list[str]:
    """The sum on each rank, and every message sent for it."""
    _check_on_all_ranks("all_reduce", messages=2)
    return [PROVEN, "2(N - 1) messages a rank, none larger than a chunk, and no deadlock"]


def _check_on_all_ranks(task: str, messages: int) -> None:
    """Run the student's function on every number of ranks.

    Args:
        task: which function, as the probe calls it.
        messages: how many a rank may send, in multiples of N - 1.
    """
    for ranks in RANKS:
        try:
            reports = probe("probe_04_ring.py", ranks, task, timeout=60, stall=4)
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.hint or _run_hint(ranks, wrong.message)) from None
        for report in reports:
            _check_values(task, ranks, report)
            _check_messages(ranks, report, messages * (ranks - 1))


def _run_hint(ranks: int, message: str) -> str:
    """The question that fits a run that failed."""
    if ranks == 1:
        return "A rank alone has no neighbour. Which steps are left?"
    if "SIGABRT" in message:
        cut = "A message is not as long as the tensor that waits for it. Which chunk comes now?"
        return f"With 2 ranks yours is right. {cut}" if ranks > 2 else cut
    return HANGS if "hangs" in message or "was stopped" in message else ""


def _bounds(length: int, ranks: int, chunk: int) -> tuple[int, int]:
    """Where a chunk begins and ends: the first ones are one longer, as tensor_split cuts."""
    short, longer = divmod(length, ranks)
    begin = chunk * short + min(chunk, longer)
    return begin, begin + short + (chunk < longer)


def _check_values(task: str, ranks: int, report: dict[str, Any]) -> None:
    rank, length, got = report["rank"], report["length"], report["values"]
    count = f"{length} value{'s' * (length != 1)}"
    where = f"{ranks} rank{'s' * (ranks > 1)}, {count}: rank {rank}"
    result = [float((i % 9 + 1) * sum(10**r for r in range(ranks))) for i in range(length)]
    what, wanted = "", (rank + 1) % ranks
    expected = result
    if task == "reduce_scatter":
        begin, end = _bounds(length, ranks, wanted)
        what, expected = f"chunk {wanted} = ", result[begin:end]
        if got is None:
            hint = "Which chunk does this rank own in the end? Return it."
            raise Wrong(f"{where} returned a {report['kind']}, expected a tensor", hint)
    if got != expected:
        verb = "returned" if task == "reduce_scatter" else "holds"
        hint = _hint(task, ranks, rank, got, expected, result)
        raise Wrong(f"{where} {verb} {_text(got)}, expected {what}{_text(expected)}", hint)


def _text(values: list[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"


def _hint(
    task: str, ranks: int, rank: int, got: list, expected: list[float], result: list[float]
) -> str:
    """The question that fits a wrong value."""
    if task == "reduce_scatter" and ranks > 1:
        if got == result or len(got) > math.ceil(len(result) / ranks):
            return "One chunk is asked for, and that is more."
        for chunk in range(ranks):
            begin, end = _bounds(len(result), ranks, chunk)
            if got == result[begin:end] and got:
                return f"Finished, but that is chunk {chunk}. Which one comes in last?"
    if len(got) != len(expected):
        return "Is that the chunk that came in last? And does each rank cut as tensor_split(N)?"
    if -1.0 in got:
        return "A -1 is what the probe put where nothing had come yet. Which chunk is missing?"
    if any(value > right for value, right in zip(got, expected, strict=True)):
        return "Rank r brings powers of 10^r: whose values are in it twice? How many steps?"
    if ranks > 2:
        return "With 2 ranks yours is right. What differs? From which neighbour do you receive?"
    return f"Rank r brings powers of 10^r: whose values does rank {rank} lack?"


def _check_messages(ranks: int, report: dict[str, Any], allowed: int) -> None:
    where = f"{ranks} ranks, {report['length']} values: rank {report['rank']}"
    if report["collectives"]:
        raise Wrong(
            f"{where} used {', '.join(report['collectives'])}",
            "Can you do it with messages alone?",
        )
    chunk = math.ceil(report["length"] / ranks)
    largest = max(report["messages"], default=0)
    if largest > chunk:
        raise Wrong(
            f"{where} sent {largest} values in one message; a chunk has at most {chunk}",
            "What does the right neighbour still need of all that?",
        )
    if len(report["messages"]) > allowed:
        raise Wrong(
            f"{where} sent {len(report['messages'])} messages, allowed are {allowed}",
            "How many steps does a chunk need to have been everywhere?",
        )
    if len(report["receivers"]) > 1:
        to = ", ".join(map(str, report["receivers"]))
        raise Wrong(f"{where} sent to ranks {to}", "In a ring each rank has one receiver. Which?")


@exercise("04.3", "predict time and bytes")
def check_04_3(predict: Callable) -> list[str]:
    """Both algorithms, several numbers of ranks and sizes, and a name that is none of them."""
    for ranks, size, alpha, bandwidth in (
        (4, 8_000_000, 1e-4, 1e9),
        (4, 8_000_000, 0.0, 1e9),
        (2, 8_000_000, 1e-4, 1e9),
        (10, 1.2e9, 5e-5, 1e9),
        (3, 1000, 1e-3, 1e6),
        (1, 1000, 1e-3, 1e6),
    ):
        for algorithm in ("naive", "ring"):
            _check_prediction(predict, algorithm, ranks, size, alpha, bandwidth)
    try:
        answer = predict("rign", 4, 1000, 1e-3, 1e6)
    except ValueError:
        return ["naive and ring, 1 to 10 ranks, with latency and without", "a ValueError for rign"]
    except Exception as error:  # a NotImplementedError too: the formulas are there
        raise Wrong(
            f'predict("rign", 4, 1000, ...) raised {type(error).__name__}: {error}\n'
            "expected a ValueError",
            "Does your error tell who misspelt the name which names there are?",
        ) from None
    raise Wrong(
        f'predict("rign", 4, 1000, ...) returned {answer}, expected a ValueError',
        "A number for a name nobody knows is worse than an error.",
    )


def _check_prediction(
    predict: Callable, algorithm: str, ranks: int, size: float, alpha: float, bandwidth: float
) -> None:
    call = f'predict("{algorithm}", {ranks}, {size:g}, {alpha:g}, {bandwidth:g})'
    hint = "A rank alone sends nothing. What is left of the formula?" if ranks == 1 else ""
    answer = called(call, predict, algorithm, ranks, size, alpha, bandwidth, hint=hint)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise Wrong(f"{call} returned {answer!r}, expected a pair (seconds, bytes)", "")
    messages = 2 * (ranks - 1)
    volume = messages * size / (1 if algorithm == "naive" else ranks)
    sent = volume / 2 if algorithm == "naive" else volume
    seconds = messages * alpha + volume / bandwidth
    for given, expected, unit, hints in (
        (answer[0], seconds, "seconds", _time_hints(ranks, size, alpha, bandwidth, volume)),
        (answer[1], sent, "bytes", _byte_hints(ranks, size, sent)),
    ):
        got = _number(given)
        if got is None:
            said = f"{call} returned {answer!r}, expected two numbers (seconds, bytes)"
            raise Wrong(said, f"Which line of yours gives the {unit}?")
        if not math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12):
            hint = next((h for h, v in hints.items() if math.isclose(got, v, rel_tol=1e-9)), "")
            hint = hint or "Count messages in a row, and the bytes that the busiest link carries."
            raise Wrong(f"{call}: {unit} {got:g}, expected {expected:g}", hint)


def _number(value: Any) -> float | None:
    """The value as a float; None if it is no number."""
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # so do None, a list, an array, a tensor
        return None


def _time_hints(
    ranks: int, size: float, alpha: float, bandwidth: float, volume: float
) -> dict[str, float]:
    """The question that fits each wrong time."""
    others = ranks - 1
    return {
        "There, or there and back? An all-reduce is two halves.": others * alpha
        + volume / 2 / bandwidth,
        "N steps or N - 1? The last one would bring what is there already.": 2 * ranks * alpha
        + volume / others * ranks / bandwidth
        if others
        else math.nan,
        "Does a message cost nothing, however many there are?": volume / bandwidth,
        "How many messages go one after another? Each of them costs alpha.": alpha
        + volume / bandwidth,
        "Bytes times bandwidth? Per second of what?": 2 * others * alpha + volume * bandwidth,
        "Each message has S / N bytes, not S.": 2 * others * (alpha + size / bandwidth),
        "In the ring messages have S / N bytes. Through rank 0?": 2
        * others
        * (alpha + size / ranks / bandwidth),
    }


def _byte_hints(ranks: int, size: float, sent: float) -> dict[str, float]:
    """The question that fits each wrong number of bytes."""
    return {
        "Sent and received? Only what one rank sends was asked for.": 2 * sent,
        "What all ranks send together? Only the busiest was asked for.": 2 * (ranks - 1) * size,
        "Half of it: both halves of the ring send.": sent / 2,
        "Which rank is the busiest? Not all send the same.": size,
    }
