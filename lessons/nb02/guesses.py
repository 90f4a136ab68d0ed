"""The answers to the predictions of notebook 02, by the id of the cell that measures."""

ANSWERS = {
    "ten-five-torch": "c",
    "norms-compare": "b",
    "torch-manual-seed": "b",
    "late-slice-20": "b",
    "s-4-sum": "c",
    "parts-figure": lambda ratio: "c" if ratio > 1.1 else "b",
}
