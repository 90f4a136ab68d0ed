"""04.4: predict time and bytes."""

import math
from collections.abc import Callable

from course_utils.checking.calls import called, refused
from course_utils.checking.compare import Wrong, expect, kind, plain
from course_utils.checking.values import close, is_number, listed

TITLE = "predict time and bytes"
PROVEN = (
    "naive and ring, 1 to 10 ranks, with latency and without",
    "a ValueError for any other name",
)
OURS = '''"""What an all-reduce costs, through rank 0 and in a ring."""


def seconds_and_bytes(
    algorithm: str, ranks: int, size: float, alpha: float, bandwidth: float
) -> tuple[float, float]:
    """Seconds that an all-reduce takes, and bytes that its busiest rank sends."""
    messages = 2 * (ranks - 1)  # one after another
    if algorithm == "naive":
        return messages * (alpha + size / bandwidth), (ranks - 1) * size
    if algorithm == "ring":
        return messages * (alpha + size / ranks / bandwidth), messages * size / ranks
    raise ValueError(f"no formula for {algorithm!r}: use naive or ring")
'''
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
NAMES = ("rign", "tree", "rings", "naiv", "RING", "")


def cases(seconds_and_bytes: Callable) -> None:
    """Both algorithms, several numbers of ranks and sizes, and names that are neither."""
    for link in LINKS:
        for algorithm in ("naive", "ring"):
            look(seconds_and_bytes, algorithm, *link)
    hint = "A number for a name nobody knows is worse than an error: which names are there?"
    for name in NAMES:
        call = f'seconds_and_bytes("{name}", 4, 1000, ...)'
        refused(call, seconds_and_bytes, name, 4, 1000, 1e-3, 1e6, hint=hint)


def look(
    function: Callable, algorithm: str, ranks: int, size: float, alpha: float, bandwidth: float
) -> None:
    """One prediction."""
    call = f'seconds_and_bytes("{algorithm}", {ranks}, {size:g}, {alpha:g}, {bandwidth:g})'
    alone = "A rank alone sends nothing. What is left of the formula?" if ranks == 1 else ""
    answer = called(call, function, algorithm, ranks, size, alpha, bandwidth, hint=alone)
    pair = listed(answer)
    if pair is None or len(pair) != 2:
        what = kind(answer) if pair is None else f"{kind(answer)} of {len(pair)}"
        said = f"{call} returned {what}, expected a pair (seconds, bytes)"
        raise Wrong(said, "Return both: the seconds first, then the bytes.")
    got = plain(pair)
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
    times = time_hints(ranks, size, alpha, bandwidth, volume)
    bytes_ = {} if alone else byte_hints(ranks, size, sent)
    expect(f"{call}: seconds", got[0], seconds, times, count, CLOSE)
    expect(f"{call}: bytes", got[1], sent, bytes_, count, CLOSE)


def time_hints(
    ranks: int, size: float, alpha: float, bandwidth: float, volume: float
) -> dict[str, float]:
    """The question for each known mistake, with the seconds that it gives."""
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


def byte_hints(ranks: int, size: float, sent: float) -> dict[str, float]:
    """The question for each known mistake, with the bytes that it gives."""
    return {
        "Sent and received? Only what one rank sends was asked for.": 2 * sent,
        "What all ranks send together? Only the busiest was asked for.": 2 * (ranks - 1) * size,
        "Half of it: both halves of the ring send.": sent / 2,
        "Which rank is the busiest? Not all send the same.": float(size),
    }


NAIVE_TIME = "messages * (alpha + size / bandwidth)"
NAIVE_BYTES = "(ranks - 1) * size"
NAIVE = f"{NAIVE_TIME}, {NAIVE_BYTES}"
RING_BYTES = "messages * size / ranks"
RING = f"messages * (alpha + size / ranks / bandwidth), {RING_BYTES}"

WRONG = [
    (
        "one direction",
        NAIVE_TIME,
        "(ranks - 1) * (alpha + size / bandwidth)",
        "There, or there and back?",
    ),
    ("N steps", RING, RING.replace("messages", "2 * ranks", 1), "N steps or N - 1?"),
    (
        "no latency",
        NAIVE_TIME,
        "messages * size / bandwidth",
        "Does a message cost nothing",
    ),
    (
        "one latency",
        NAIVE_TIME,
        "alpha + messages * size / bandwidth",
        "How many messages",
    ),
    (
        "whole tensors in the ring",
        "size / ranks / bandwidth",
        "size / bandwidth",
        "S / N bytes, not S",
    ),
    ("bytes of rank 3", NAIVE_BYTES, "size", "Which rank is the busiest?"),
    ("sent and received", NAIVE_BYTES, "messages * size", "Only what one rank sends"),
    (
        "half the ring",
        RING_BYTES,
        "(ranks - 1) * size / ranks",
        "both halves of the ring send",
    ),
    ("any name", 'if algorithm == "ring":', "if True:", "expected a ValueError"),
    (
        "only the examples are refused",
        'if algorithm == "ring":',
        'if algorithm not in ("rign", "tree"):',
        'seconds_and_bytes("rings", 4, 1000, ...) returned',
    ),
    (
        "by the first letter",
        'if algorithm == "naive":',
        'if algorithm.startswith("n"):',
        'seconds_and_bytes("naiv", 4, 1000, ...) returned',
    ),
    ("three numbers", "->", "lambda pair: (*pair, 0)", "a tuple of 3, expected a pair"),
    ("a number", NAIVE, NAIVE_TIME, "expected a pair"),
    ("left open", "ValueError", "NotImplementedError", "which names are there?"),
    ("no numbers", NAIVE, "None, None", "Which line of yours gives the seconds?"),
    ("words", NAIVE_BYTES, "'S'", "Which line of yours gives the bytes?"),
    (
        "divided by 0 of N - 1",
        RING,
        "messages * alpha + 2 * size / (ranks / (ranks - 1)) / bandwidth, " + RING_BYTES,
        "A rank alone sends nothing",
    ),
]
FLOAT32 = "lambda n: torch.tensor(n, dtype=torch.float32)"

RIGHT = [
    ("a list", "->", "list"),
    ("a generator", "->", "lambda pair: (each for each in pair)"),
    ("numpy's numbers", "->", "numpys"),
    ("single precision", "->", f"lambda pair: leaves(pair, {FLOAT32})"),
    ("a tensor", "->", "torch.tensor"),
    ("exact fractions", "->", "lambda pair: map(__import__('fractions').Fraction, pair)"),
    (
        "whole bytes in each message",
        RING,
        "messages * (alpha + -(-size // ranks) / bandwidth), messages * -(-size // ranks)",
    ),
]
