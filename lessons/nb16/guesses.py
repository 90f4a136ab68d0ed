"""The answers to the predictions of notebook 16, by the id of the cell that measures."""

ANSWERS = {
    "all-030": "c",
    "by-hand": "d",
    "seconds-by-hand": "c",
    "all-059": "b",
    "kept-compared": "d",
}
