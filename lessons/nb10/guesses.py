"""The answers to the predictions of notebook 10, by the id of the cell that measures."""

ANSWERS = {
    "wait": "c",
    "quarrel-result": "b",
    "bytes": "c",
    "on-links": lambda gain: "c" if gain < 1.2 else "b" if gain < 1.7 else "a",
    "alone-steps": lambda ratio: "a" if ratio < 3 / 4 else "b" if ratio < 4 / 3 else "c",
}
