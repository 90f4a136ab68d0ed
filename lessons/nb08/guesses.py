"""The answers to the predictions of notebook 08, by the id of the cell that measures."""

ANSWERS = {
    "one-huge-gradient": lambda far: "a" if 0.2 < far < 2 else f"{far:.1f} learning rates",
    "common-accuracy": "b",
    "run-lm": "d",
    "rows-dealt": "c",
    "rates": lambda fewer: "a" if 1 < fewer < 1.6 else f"{fewer:.1f} times fewer",
    "eight": "a",
}
