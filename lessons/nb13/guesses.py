"""The answers to the predictions of notebook 13, by the id of the cell that measures."""

ANSWERS = {
    "45745a71": "c",
    "466f8ba1": "b",
    "4c8e1cd2": "c",
    "03cf03ea": "b",
    "masked-half": "d",
}
