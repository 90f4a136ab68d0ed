"""The answers to the predictions of notebook 14, by the id of the cell that measures."""

ANSWERS = {
    "a9a17094": "a: a dead rank",
    "90d32beb": "c: they wait in the next all-reduce",
    "b3f439f2": lambda part: {"schedule": "b: the schedule"}.get(part, part),
    "d9e3d7ea": lambda torn: (
        f"{'a' if torn < 1 else 'b' if torn < 11 else 'c' if torn < 21 else 'd'}: after {torn}"
    ),
    "873096e4": lambda seconds: f"b: every {seconds / 60:.0f} minutes",
}
