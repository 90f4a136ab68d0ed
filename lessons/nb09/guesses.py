"""The answers to the predictions of notebook 09, by the id of the cell that measures."""

ANSWERS = {
    "bubble": "b",
    "alive": "c",
    "uneven": "c",
    "how-many": "b",
    "interleaved-play": "c",
}
