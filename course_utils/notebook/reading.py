"""How long a reader needs for a notebook: one formula, calibrated with readers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

WORDS_A_MINUTE, LINES_A_MINUTE = 130, 10
MINUTES_OF_A_PREDICTION, MINUTES_OF_AN_EXERCISE = 2, 15
TIME = re.compile(r"\*\*Time\*\* (?:about )?(\d+) minutes")


def source(cell: Mapping[str, Any]) -> str:
    """A cell's text, also where the file holds it as a list of lines."""
    return "".join(cell["source"])


def core_of(cells: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cells before the part headed *Going further*."""
    core = []
    for cell in cells:
        if cell["cell_type"] == "markdown" and "\n## Going further" in "\n" + source(cell):
            break
        core.append(cell)
    return core


def is_folded(cell: Mapping[str, Any]) -> bool:
    """Whether JupyterLab shows only a bar in place of the cell's source."""
    return bool(cell["metadata"].get("jupyter", {}).get("source_hidden"))


def minutes(cells: Iterable[Mapping[str, Any]]) -> int:
    """Minutes that the core takes: words, visible lines of code, predictions and exercises."""
    core = core_of(cells)
    words = sum(len(source(cell).split()) for cell in core if cell["cell_type"] == "markdown")
    seen = [source(c) for c in core if c["cell_type"] == "code" and not is_folded(c)]
    lines = sum(bool(line.strip()) for text in seen for line in text.splitlines())
    predictions = sum('predict("")' in text for text in seen)
    exercises = sum(bool(re.search(r"^check\(", text, re.MULTILINE)) for text in seen)
    return round(
        words / WORDS_A_MINUTE
        + lines / LINES_A_MINUTE
        + predictions * MINUTES_OF_A_PREDICTION
        + exercises * MINUTES_OF_AN_EXERCISE
    )


def write_time(book: Any) -> None:
    """Put the minutes of the formula where the first cell of a notebook says **Time**."""
    first = book["cells"][0]
    first["source"] = TIME.sub(f"**Time** {minutes(book['cells'])} minutes", source(first))
