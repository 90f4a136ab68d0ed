"""The pictures that notebooks have saved, and what they show, in words."""

import base64
from typing import Any

from course_utils import cells, paths
from nbtorchrun.errors import InputError

# Name: the notebook and the id of the cell that has saved it.
ON_THE_HOME_PAGE = {
    "timeline": ("03", "count-proof"),
    "curve": ("07", "compare-masks-figure"),
}


def options(cell: dict[str, Any]) -> dict[str, str]:
    """How a page shows the pictures of a cell: their description, and the width they were drawn in.

    Both are saved with the picture (`course_utils.show.inline`); the page has two pixels for one.
    """
    said = [
        output["metadata"]["image/png"]
        for output in cell["outputs"]
        if "image/png" in output.get("data", ())
    ]
    if not said:
        return {}
    widest = max(picture["width"] for picture in said)
    return {"alt": " ".join(picture["alt"] for picture in said), "width": f"{widest}px"}


def saved(notebook: str, cell: str) -> bytes:
    """The picture that a cell has saved, as PNG.

    Args:
        notebook: its number, such as "03".
        cell: its id.

    Raises:
        InputError: there is none.
    """
    for output in _outputs(notebook, cell):
        if picture := output.get("data", {}).get("image/png"):
            return base64.b64decode("".join(picture))
    raise InputError(
        f"the home page shows the picture of cell {cell} in notebook {notebook}, which has none: "
        "choose another in website/pictures.py"
    )


def verdict() -> str:
    """The first verdict about a hang in notebook 00: what a student sees first of one."""
    for output in _outputs("00"):
        _, hangs, why = "".join(output.get("text", "")).partition("the run hangs")
        if hangs:
            return hangs + why
    raise InputError("the home page shows a verdict from notebook 00, and no output has one there")


def _outputs(notebook: str, cell: str = "") -> list[dict[str, Any]]:
    (path,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
    wanted = [c for c in cells.read(path)["cells"] if cell in ("", c.get("id"))]
    return [output for each in wanted for output in each.get("outputs", ())]
