"""Notebook 04, ring all-reduce: one that deadlocks, its two halves, and its cost."""

import math
from collections.abc import Callable

from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, expect, plain
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import close, is_number

HANGS = "Who receives while everyone sends? Begin both before you wait for either."
CLOSE = 3e-7  # float32 is fine
LINKS = [  # ranks, bytes, latency, bandwidth
    (4, 8_000_000, 1e-4, 1e9),
    (4, 8_000_000, 0.0, 1e9),
    (2, 8_000_000, 1e-4, 1e9),
    (10, 1.2e9, 5e-5, 1e9),
    (7, 123_457, 3.3e-4, 2.7e8),
    (3, 1000, 1e-3, 1e6),
    (1, 1000, 1e-3, 1e6),
]


@exercise("04.2", "ring reduce-scatter", file="exercise_04_2.py")
def check_04_2() -> list[str]:
    """The finished chunk of each rank, and every message sent for it."""
    return _check_on_all_ranks("reduce_scatter", "N - 1 messages")


@exercise("04.3", "ring all-gather", file="exercise_04_3.py")
def check_04_3() -> list[str]:
    """The whole tensor on each rank, and every message sent for it."""
    return _check_on_all_ranks("all_gather", "N - 1 messages")


@exercise("04.1", "a ring that deadlocks", file="exercise_04_1.py")
def check_04_1() -> list[str]:
    """What comes from the left, and every message sent for it."""
    return _check_on_all_ranks("exchange", "one message")


def _check_on_all_ranks(task: str, messages: str) -> list[str]:
    """Run the student's function on every number of ranks; with 2 ranks left is right."""
    lengths = "of every length" if task == "exchange" else "none larger than a chunk"
    numbers = (2, 3, 4, 6) + (1,) * (task != "exchange")
    probe_each("probe_04_ring.py", numbers, task, hint=_run_hint)
    return [
        "up to 6 ranks and a group, 0 to 60,000 values, two dtypes: every value right, also where "
        "N does not divide",
        f"{messages} per rank to one neighbour, {lengths}, and no collective",
    ]


def _run_hint(ranks: int, message: str) -> str:
    if ranks == 1:
        return "A rank alone has no neighbour. Which steps are left?"
    if "SIGABRT" in message:
        cut = "A message is not as long as the tensor that waits for it. Which tensor comes now?"
        return f"With 2 ranks yours is right. {cut}" if ranks > 2 else cut
    if "not connected" in message or "reached the end of the script" in message:
        return "Does each message of yours name the `group`, and does every rank send as many?"
    return HANGS if "hangs" in message else ""


@exercise("04.4", "predict time and bytes")
def check_04_4(predict: Callable) -> list[str]:
    """Both algorithms, several numbers of ranks and sizes, and names that are neither."""
    for link in LINKS:
        for algorithm in ("naive", "ring"):
            _check_prediction(predict, algorithm, *link)
    for name in ("rign", "tree"):
        hint = "A number for a name nobody knows is worse than an error: which names are there?"
        refused(
            f'seconds_and_bytes("{name}", 4, 1000, ...)',
            predict,
            name,
            4,
            1000,
            1e-3,
            1e6,
            hint=hint,
        )
    return ["naive and ring, 1 to 10 ranks, with latency and without", "a ValueError for rign"]


def _check_prediction(
    predict: Callable, algorithm: str, ranks: int, size: float, alpha: float, bandwidth: float
) -> None:
    call = f'seconds_and_bytes("{algorithm}", {ranks}, {size:g}, {alpha:g}, {bandwidth:g})'
    alone = "A rank alone sends nothing. What is left of the formula?" if ranks == 1 else ""
    answer = called(call, predict, algorithm, ranks, size, alpha, bandwidth, hint=alone)
    if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
        raise Wrong(f"{call} returned {answer!r}, expected a pair (seconds, bytes)")
    got = plain(answer)
    for value, unit in zip(got, ("seconds", "bytes"), strict=True):
        if not is_number(value):
            said = f"{call} returned {answer!r}, expected two numbers (seconds, bytes)"
            raise Wrong(said, f"Which line of yours gives the {unit}?")
    messages = 2 * (ranks - 1)
    volume = messages * size / (1 if algorithm == "naive" else ranks)
    seconds = messages * alpha + volume / bandwidth
    sent = volume / 2 if algorithm == "naive" else volume
    rounded = messages * math.ceil(size / ranks)  # whole bytes in each message of a ring
    if algorithm == "ring" and close(got[1], float(rounded), CLOSE):
        sent, seconds = float(rounded), seconds if close(got[0], seconds) else got[0]
    count = alone or "Count messages in a row, and the bytes that the busiest link carries."
    times = _time_hints(ranks, size, alpha, bandwidth, volume)
    bytes_ = {} if alone else _byte_hints(ranks, size, sent)
    expect(f"{call}: seconds", got[0], seconds, times, count, CLOSE)
    expect(f"{call}: bytes", got[1], sent, bytes_, count, CLOSE)


def _time_hints(
    ranks: int, size: float, alpha: float, bandwidth: float, volume: float
) -> dict[str, float]:
    others = ranks - 1
    if not others:
        return {}
    last = "N steps or N - 1? The last one would bring what is there already."
    through = "In the ring messages have S / N bytes. Through rank 0?"
    mistakes = [  # messages one after another, and bytes
        ("There, or there and back? An all-reduce is two halves.", others, volume / 2),
        (last, 2 * ranks, volume / others * ranks),
        ("Does a message cost nothing, however many there are?", 0, volume),
        ("How many messages go one after another? Each costs alpha.", 1, volume),
        ("Bytes times bandwidth? Per second of what?", 2 * others, volume * bandwidth**2),
        ("Each message has S / N bytes, not S.", 2 * others, 2 * others * size),
        (through, 2 * others, 2 * others * size / ranks),
    ]
    return {question: n * alpha + moved / bandwidth for question, n, moved in mistakes}


def _byte_hints(ranks: int, size: float, sent: float) -> dict[str, float]:
    return {
        "Sent and received? Only what one rank sends was asked for.": 2 * sent,
        "What all ranks send together? Only the busiest was asked for.": 2 * (ranks - 1) * size,
        "Half of it: both halves of the ring send.": sent / 2,
        "Which rank is the busiest? Not all send the same.": float(size),
    }
