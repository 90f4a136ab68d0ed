"""Formulas as MathML, written when the site is built: browsers draw them without a script."""

import re
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

CONVERTER = LatexToMathML(annotation=True)  # with the LaTeX: a copied formula can be used
LOGGER = logging.getLogger(__name__)


def inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula that stands in a line."""
    _write(translator, node, display=False)


def block(translator: Any, node: nodes.Element) -> None:
    """Write a formula that stands alone."""
    translator.body.append('<div class="formula">')
    _write(translator, node, display=True)
    translator.body.append("</div>\n")


def _write(translator: Any, node: nodes.Element, display: bool) -> None:
    latex = node.astext()
    if wrong := why_unreadable(latex):
        LOGGER.warning(wrong, location=node)
    else:
        translator.body.append(CONVERTER.convert_with_local_state(latex, displaystyle=display))
    raise nodes.SkipNode


def why_unreadable(latex: str) -> str:
    """What is wrong with a formula; '' if it can be drawn."""
    try:
        CONVERTER.convert_with_local_state(latex, displaystyle=True)
    except LatexError as error:
        plain = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip()  # it comes in colour
        return f"the formula {latex} cannot be drawn: {plain.splitlines()[0]}"
    return ""


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
