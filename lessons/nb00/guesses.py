"""The answers to the predictions of notebook 00, by the id of the cell that measures."""

ANSWERS = {
    "stuck-launch-two": "c",
    "calls-all-gather": "c",
    "barrier-figure": "c",
    "orders-look": "d",
    "bandwidth-figure": "a",
}
