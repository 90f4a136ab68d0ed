"""The answers to the predictions of notebook 10, by the id of the cell that measures."""

ANSWERS = {
    "wait": "c",
    "quarrel-result": "b",
    "bytes": "c",
    "on-links": lambda gain: "c" if gain < 1.2 else "b" if gain < 1.7 else "a",
    "methods-figure": lambda before: "a" if before == 0 else "b" if before < 3 else "c",
}
