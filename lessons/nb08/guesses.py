"""The answers to the predictions of notebook 08, by the id of the cell that measures."""

ANSWERS = {
    "padding-share": lambda share: "c" if 0.15 < share < 0.4 else f"{share:.0%}",
    "one-huge-gradient": lambda far: "a" if 0.2 < far < 2 else f"{far:.1f} learning rates",
    "common-accuracy": "b",
    "run-lm": "d",
    "rows-dealt": "c",
    "rates": lambda fewer: "a" if 1 < fewer < 1.6 else f"{fewer:.1f} times fewer",
    "eight": "a",
}
