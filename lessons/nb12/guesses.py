"""The answers to the predictions of notebook 12, by the id of the cell that measures."""

ANSWERS = {
    "crossings-counted": lambda times: "d" if times == 4 else f"{times:g} times",
    "unreduced-found": "b",
    "57a24cf7": "d",
    "balanced": lambda busiest: "a" if 3.5 < busiest <= 4 else f"{busiest:.1f} even shares",
    "divided": "c",
}
