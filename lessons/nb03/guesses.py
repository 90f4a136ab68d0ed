"""The answers to the predictions of notebook 03, by the id of the cell that measures."""

BUCKETS = {"a": 1, "b": 0.7, "c": 0.5}  # of the flat version's step
TIMES = {"a": 1, "b": 2, "c": 4.5, "d": 9}  # what a token counts


def _nearest(options: dict[str, float], found: float) -> str:
    """The option closest to what was measured."""
    return min(options, key=lambda letter: abs(options[letter] - found))


ANSWERS = {
    "found-launch-imitations": "b",
    "forgetful-run": "d",
    "names-messages-local": lambda share: _nearest(BUCKETS, share),
    "tokens-to-hide": "b",
    "token-counts-seen": lambda times: _nearest(TIMES, times),
}
