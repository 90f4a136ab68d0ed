"""The answers to the predictions of notebook 17, by the id of the cell that measures."""

ANSWERS = {
    "compare-groups": "a",
    "six-answer": "b",
    "bugs-found": lambda climb: f"{'abcdef'[climb]}: {climb} of 5",
    "diagnosis-picture": lambda gone: {
        (): "d: none",
        ("stale",): 'a: that of "stale"',
        ("late",): 'b: that of "late"',
        ("stale", "late"): "c: both",
    }.get(tuple(gone), " and ".join(gone)),
    "rounded-found": lambda above: f"{'aaabcd'[above]}: {above} of 5",
}
