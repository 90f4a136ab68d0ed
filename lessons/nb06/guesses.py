"""The answers to the predictions of notebook 06, by the id of the cell that measures."""

TOKENS = {"a": 30, "b": 100, "c": 300, "d": 1000}  # where two lines cross


def _nearest(tokens: float) -> str:
    """The option closest to what was measured."""
    return min(TOKENS, key=lambda letter: abs(TOKENS[letter] - tokens))


def _longer(ratio: float) -> str:
    """The option for a time that is `ratio` times as long: half, 5/6, 7/6 or twice."""
    options = {"a": 1 / 2, "b": 5 / 6, "c": 7 / 6, "d": 2}
    return min(options, key=lambda letter: abs(options[letter] - ratio))


ANSWERS = {
    "imports": "b",
    "d8841785": "a",
    "proof-layers": "c",
    "proof-training-add": lambda worst: "d" if worst < 0.1 else "not d",
    "demo-main": lambda tokens: f"{_nearest(tokens)}: {tokens:.0f} tokens",
    "share-picture": lambda ratio: f"{_longer(ratio)}: {ratio:.2f} times as long",
}
