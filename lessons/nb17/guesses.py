"""The answers to the predictions of notebook 17, by the id of the cell that measures."""

ANSWERS = {
    "compare-groups": "a",
    "six-answer": "b",
    "held-picture": "b",
    "bugs-found": lambda climb: f"{'abcdef'[climb]}: {climb} of 5",
    "rounded-found": lambda above: f"{'aaabcd'[above]}: {above} of 5",
}
