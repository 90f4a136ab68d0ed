"""The answers to the predictions of notebook 06, by the id of the cell that measures."""

ANSWERS = {
    "imports": "b",
    "d8841785": "a",
    "12c2207a": "c",
    "proof-layers": "c",
    "proof-training-add": lambda worst: "d" if worst < 0.1 else "not d",
    "clip-found": "c",
    "demo-main": lambda tokens: f"c: {tokens:.0f} tokens",
}
