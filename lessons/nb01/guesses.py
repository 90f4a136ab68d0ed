"""The answers to the predictions of notebook 01, by the id of the cell that measures."""

ANSWERS = {
    "def-f-a": "d",
    "matmul-tried": "c",
    "cost-figure": lambda passes: "b" if 1.8 < passes < 6 else f"{passes:.1f}",
    "rules-keep": "c",
    "planted-figure": "d",
    "ready-figure": "c",
}
