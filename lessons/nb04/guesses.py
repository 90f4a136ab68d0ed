"""The answers to the predictions of notebook 04, by the id of the cell that measures."""

ANSWERS = {
    "carried-rank-reports": "b",
    "ranks-count-len": "c",
    "deadlock": "c",
    "s-rate-1e6": "c",
    "links-worker": "b",
    "ring-or-tree": "b",
}
