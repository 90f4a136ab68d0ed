"""The answers to the predictions of notebook 12, by the id of the cell that measures."""

ANSWERS = {
    "crossings-counted": lambda times: "d" if times == 4 else f"{times:g} times",
    "expert-bytes-found": "c",
    "57a24cf7": "d",
    "822dd0eb": lambda least: {"none": "a", "auxiliary loss": "b", "bias": "c"}.get(least, "d"),
    "divided": "c",
}
