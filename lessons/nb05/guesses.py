"""The answers to the predictions of notebook 05, by the id of the cell that measures."""

ANSWERS = {
    "memory-meaning": "a",
    "stages-figure": "c",
    "one-equal-add": "b",
    "discard-run": lambda inside: f"b, {inside:.1f} MB",
    "hide-lanes": "b",
    "answer": "b",
}
