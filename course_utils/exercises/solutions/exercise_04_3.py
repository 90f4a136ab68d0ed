"""The cost of an all-reduce through rank 0, and around a ring."""


def predict(
    algorithm: str, ranks: int, size: float, alpha: float, bandwidth: float
) -> tuple[float, float]:
    """Seconds that an all-reduce takes, and bytes that its busiest rank sends."""
    messages = 2 * (ranks - 1)  # one after another
    if algorithm == "naive":
        return messages * (alpha + size / bandwidth), (ranks - 1) * size
    if algorithm == "ring":
        return messages * (alpha + size / ranks / bandwidth), messages * size / ranks
    raise ValueError(f"no formula for {algorithm!r}: use naive or ring")
