"""The pictures that notebooks have saved, and what they show, in words."""

import ast
import base64
import re
from typing import Any

from course_utils import paths
from course_utils.errors import InputError
from course_utils.notebook import cells

# Name: the notebook and the id of the cell that has saved it.
ON_THE_HOME_PAGE = {
    "timeline": ("03", "count-proof"),
    "curve": ("07", "compare-masks-figure"),
}
TITLED = {"title", "set_title", "suptitle", "axes", "panels"}  # calls that are given a title


def description(source: str, heading: str) -> str:
    """What a cell's picture shows: the titles that its code gives it, under a heading.

    Args:
        source: of the cell.
        heading: of the section that the cell stands in.
    """
    titles = [text.strip() for text in _titles(source) if " " in text.strip()]
    where = re.sub(r"[*`$\\]", "", heading)
    return "; ".join([f"Figure in {where!r}", *dict.fromkeys(titles)]).replace("\n", " ")


def _titles(source: str) -> list[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.keyword, ast.Assign)) and _name(node).startswith("title"):
            found += _words(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in TITLED:
            found += [text for argument in node.args for text in _words(argument)][:1]
    return found


def _name(node: ast.keyword | ast.Assign) -> str:
    return node.arg or "" if isinstance(node, ast.keyword) else getattr(node.targets[0], "id", "")


def _words(node: ast.AST) -> list[str]:
    """The strings that an expression writes out; a value put into one appears as an ellipsis."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
        return ["".join(parts)]
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    return [text for child in ast.iter_child_nodes(node) for text in _words(child)]


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
        text = "".join(output.get("text", ""))
        if text.startswith("the run hangs"):
            return text
    raise InputError("the home page shows a verdict from notebook 00, and no output has one there")


def _outputs(notebook: str, cell: str = "") -> list[dict[str, Any]]:
    (path,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
    wanted = [c for c in cells.read(path)["cells"] if cell in ("", c.get("id"))]
    return [output for each in wanted for output in each.get("outputs", ())]
