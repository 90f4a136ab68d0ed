"""The answers to the predictions of notebook 11, by the id of the cell that measures."""

ANSWERS = {
    "c7754e15": "c",
    "backward-ring-drawn": "c",
    "idle-count": "c: 3/7, 43 %",
    "8c6f4c59": "b",
    "count-compared": "c",
}
