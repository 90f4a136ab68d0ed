"""Formulas as MathML, written when the site is built: browsers draw them without a script."""

from typing import Any

from docutils import nodes
from math_core import LatexToMathML

CONVERTER = LatexToMathML(annotation=True)  # with the LaTeX: a copied formula can be used


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
    translator.body.append(CONVERTER.convert_with_local_state(latex, displaystyle=display))
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
