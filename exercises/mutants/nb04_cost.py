"""Wrong answers to 04.4, and right ones of another kind."""

NAIVE_TIME = "messages * (alpha + size / bandwidth)"
NAIVE_BYTES = "(ranks - 1) * size"
NAIVE = f"{NAIVE_TIME}, {NAIVE_BYTES}"
RING_BYTES = "messages * size / ranks"
RING = f"messages * (alpha + size / ranks / bandwidth), {RING_BYTES}"

MUTANTS = {
    "04.4": [
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
    ],
}

RIGHT = {
    "04.4": [
        ("a list", NAIVE, f"[{NAIVE}]", RING, f"[{RING}]"),
        (
            "whole bytes in each message",
            RING,
            "messages * (alpha + -(-size // ranks) / bandwidth), messages * -(-size // ranks)",
        ),
    ]
}
