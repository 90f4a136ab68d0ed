"""The answers to the predictions of notebook 15, by the id of the cell that measures."""

ANSWERS = {
    "all-022": "d",
    "all-038": "d",
    "all-048": "b",
    "arrows": "b",
    "terms": "b",
}
