"""The page of a notebook: is somebody watching it, and what do they see?

Cards and outputs that change are for a page that a student has open. Programs that execute a
notebook to save or compare it (nbclient, nbval, papermill) get only plain text.
"""

import sys
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    return hasattr(_shell(), "kernel")


def watched() -> bool:
    """Whether the running cell belongs to an open page, which shows outputs as they change.

    JupyterLab, Notebook and VS Code send the cell's id with each request to the kernel, and Colab
    sends `colab`; programs that execute a notebook without a page send neither.
    """
    sent = _shell().get_parent().get("metadata", {}) if in_notebook() else {}
    return bool({"cellId", "colab"} & sent.keys())


def request() -> str:
    """The id of the request by which the page runs the cell: another one each time it runs."""
    return _shell().get_parent()["header"]["msg_id"] if in_notebook() else ""


def bundle(html: str, plain: str) -> dict[str, str]:
    """An output for a page: HTML, and plain text for programs that show no HTML."""
    # These classes keep MathJax from reading what stands between two `$` as a formula.
    marked = f'<div class="tex2jax_ignore mathjax_ignore">{html}</div>'
    return {"text/html": f"<style>{STYLE}</style>{marked}", "text/plain": plain}


def place() -> Any:
    """An empty output of the running cell: `update` fills it, and it brings the page `STYLE`."""
    from IPython.display import display

    return display(bundle("", ""), raw=True, display_id=True)


def show(html: str, plain: str) -> None:
    """Show HTML on an open page; print plain text elsewhere."""
    if in_notebook() and watched():
        from IPython.display import display

        display(bundle(html, plain), raw=True)
    else:
        print(plain, flush=True)


def _shell() -> Any:
    """The IPython shell of this process, or None."""
    ipython = sys.modules.get("IPython")
    return ipython and ipython.get_ipython()
