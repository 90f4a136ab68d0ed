"""Plausible wrong answers to exercise 04.4 of notebook 04, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""


def _predict(naive: str, ring: str, other: str = "raise ValueError(algorithm)") -> str:
    return (
        "def predict(algorithm, ranks, size, alpha, bandwidth):\n"
        "    n = ranks - 1\n"
        f"    if algorithm == 'naive':\n        return {naive}\n"
        f"    if algorithm == 'ring':\n        return {ring}\n"
        f"    {other}\n"
    )


NAIVE = "2 * n * (alpha + size / bandwidth), n * size"
RING = "2 * n * (alpha + size / ranks / bandwidth), 2 * n * size / ranks"

RIGHT = {
    "04.4": [
        ("a list", _predict(f"[{NAIVE}]", f"[{RING}]")),
        (
            "whole bytes in each message",
            _predict(
                NAIVE,
                "2 * n * (alpha + -(-size // ranks) / bandwidth), 2 * n * -(-size // ranks)",
            ),
        ),
    ]
}

MUTANTS = {
    "04.4": [
        (
            "one direction",
            _predict("n * (alpha + size / bandwidth), n * size", RING),
            "There, or there and back?",
        ),
        (
            "N steps",
            _predict(NAIVE, "2 * ranks * (alpha + size / ranks / bandwidth), 2 * n * size / ranks"),
            "N steps or N - 1?",
        ),
        (
            "no latency",
            _predict("2 * n * size / bandwidth, n * size", RING),
            "Does a message cost nothing",
        ),
        (
            "one latency",
            _predict("alpha + 2 * n * size / bandwidth, n * size", RING),
            "How many messages",
        ),
        (
            "whole tensors in the ring",
            _predict(NAIVE, "2 * n * (alpha + size / bandwidth), 2 * n * size / ranks"),
            "S / N bytes, not S",
        ),
        (
            "bytes of rank 3",
            _predict("2 * n * (alpha + size / bandwidth), size", RING),
            "Which rank is the busiest?",
        ),
        (
            "sent and received",
            _predict("2 * n * (alpha + size / bandwidth), 2 * n * size", RING),
            "Only what one rank sends",
        ),
        (
            "half the ring",
            _predict(NAIVE, "2 * n * (alpha + size / ranks / bandwidth), n * size / ranks"),
            "both halves of the ring send",
        ),
        ("any name", _predict(NAIVE, RING, f"return {RING}"), "expected a ValueError"),
        ("a number", _predict("2 * n * (alpha + size / bandwidth)", RING), "expected a pair"),
        ("left open", _predict(NAIVE, RING, "raise NotImplementedError"), "which names are there?"),
        ("no numbers", _predict("None, None", RING), "Which line of yours gives the seconds?"),
        ("words", _predict(f"({NAIVE})[0], 'S'", RING), "Which line of yours gives the bytes?"),
        (
            "divided by 0 of N - 1",
            _predict(
                NAIVE,
                "2 * n * alpha + 2 * size / (ranks / n) / bandwidth, 2 * n * size / ranks",
            ),
            "A rank alone sends nothing",
        ),
    ],
}
