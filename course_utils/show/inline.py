"""How a notebook shows a figure: sharp, and with a description in its metadata."""

import io
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from nbtorchrun.display import page

LONGEST = 600  # characters of a description
_quick = False  # whether a picture is for a slider: nobody saves it, and somebody waits for it


def install() -> None:
    """Let a notebook show its figures so from now on; elsewhere, change nothing."""
    if page.in_notebook() and "inline" in plt.get_backend():
        from IPython import get_ipython

        # Loading the back end sets its own way of showing, once: ours comes after.
        plt.switch_backend(plt.get_backend())
        get_ipython().display_formatter.formatters["image/png"].for_type(Figure, png)


@contextmanager
def quickly() -> Iterator[None]:
    """Draw pictures in half the time: as large as the figure, and with more bytes."""
    global _quick
    _quick = True
    try:
        yield
    finally:
        _quick = False


def png(figure: Figure) -> tuple[str, dict[str, Any]] | None:
    """A figure at two pixels for each pixel of the page, and what a page needs to show it.

    Returns:
        The PNG in base64, and `width` and `height` in the page's pixels with the description as
        `alt`, where nbconvert looks for it. None for a figure without anything drawn.
    """
    from IPython.core.pylabtools import retina_figure

    if _quick:
        width, height = map(round, figure.get_size_inches() * figure.dpi)
        figure.set_dpi(2 * figure.dpi)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # `savefig` draws twice, first to find the room that labels need
        made = io.BytesIO()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).save(made, "png", compress_level=1)
        said = {"width": width, "height": height, "alt": describe(figure)}
        return b2a_base64(made.getvalue(), newline=False).decode(), said
    if not (shown := retina_figure(figure, bbox_inches="tight")):
        return None
    data, metadata = shown
    return b2a_base64(_small(data), newline=False).decode(), metadata | {"alt": describe(figure)}


def _small(picture: bytes) -> bytes:
    """A PNG with a palette of 256 colours: a third of the bytes, and notebooks are downloaded."""
    made = io.BytesIO()
    opened = Image.open(io.BytesIO(picture)).convert("RGB")
    opened.quantize(256, dither=Image.Dither.NONE).save(made, "png", optimize=True)
    return made.getvalue()


def describe(figure: Figure) -> str:
    """A figure in words, for readers who do not see it: titles, axes and labels as drawn."""
    parts = [figure.get_suptitle()]
    for axes in figure.axes:
        # What the panels before have said already, such as the ranks' names, is said once.
        parts.append("; ".join(part for part in _describe(axes) if part not in "; ".join(parts)))
    for legend in figure.legends:
        parts += _listed("legend", [text.get_text() for text in legend.get_texts()])
    # Formulas keep their letters and lose their markup.
    words = " ".join(part.rstrip(".") + "." for part in parts if part).replace("$", "")
    return " ".join(words.split())[:LONGEST]


def _describe(axes: Axes) -> list[str]:
    title = next(filter(None, map(axes.get_title, ("left", "center", "right"))), "")
    written = _words(axes.texts)
    if not axes.axison:  # a diagram: its words are all there is
        return [title, *_listed("with the words", written)]
    legend = axes.get_legend()
    return [
        title,
        *_listed("horizontal axis", [axes.get_xlabel()]),
        *_listed("vertical axis", [axes.get_ylabel()]),
        *_listed("rows", _words(axes.get_yticklabels())),
        *_listed("legend", _words(legend.get_texts()) if legend else []),
        *_listed("marked", written),
    ]


def _words(texts: Iterable[Text]) -> list[str]:
    """What has letters in it; numbers, also those typeset as powers, say little without a place."""
    said = (text.get_text() for text in texts)
    return [words for words in said if any(map(str.isalpha, words.replace("mathdefault", "")))]


def _listed(name: str, words: list[str]) -> list[str]:
    """`name: one, two` with each word once, or nothing."""
    found = list(dict.fromkeys(filter(None, words)))
    return [f"{name}: {', '.join(found)}"] if found else []
