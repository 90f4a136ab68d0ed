"""What all pictures share: figures, boxes and sliders."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.display.page import watched

WIDTH = 8.0  # inches: fits GitHub's page and half a laptop's screen
GREY = "#555555"  # of words beside a picture


def axes(height: float, title: str, x: str = "", y: str = "", width: float = WIDTH) -> Axes:
    """Axes for one picture, titled and labelled; `height` and `width` in inches."""
    _, made = plt.subplots(figsize=(width, height), layout="constrained")
    made.set_title(title, loc="left")
    made.set_xlabel(x)
    made.set_ylabel(y)
    made.spines[["top", "right"]].set_visible(False)
    return made


def panels(
    rows: int, columns: int, height: float, title: str, bare: bool = False, **options: Any
) -> list[Axes]:
    """Axes for several pictures under one title, row by row.

    Args:
        rows: how many pictures stand one above another.
        columns: how many stand side by side.
        height: of the whole figure, in inches.
        title: of the whole figure.
        bare: without frames and ticks.
        **options: of `plt.subplots`.
    """
    options |= {"figsize": (WIDTH, height), "layout": "constrained", "squeeze": False}
    figure, made = plt.subplots(rows, columns, **options)
    figure.suptitle(title, x=0.01, ha="left")
    for one in made.flat:
        one.spines[["top", "right"]].set_visible(False)
        if bare:
            one.axis("off")
    return list(made.flat)


def box(axes: Axes, left: float, top: float, width: float, height: float, **look: Any) -> None:
    """A rectangle; `look` is that of matplotlib's `Rectangle`."""
    axes.add_patch(Rectangle((left, top), width, height, **look))


def centred(axes: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Words around a point."""
    axes.text(x, y, words, **{"ha": "center", "va": "center", "fontsize": 9} | look)


def rank_ticks(axes: Axes, ranks: Sequence[int], offset: float = 0.0) -> None:
    """Name the ranks on the vertical axis, rank 0 at the top."""
    axes.set_yticks([rank + offset for rank in ranks], [f"rank {rank}" for rank in ranks])
    axes.invert_yaxis()


def slider(draw: Callable[..., None], **choices: Mapping[str, Any]) -> None:
    """Show a slider for each argument of `draw`, and the picture for the values chosen.

    In tests and in saved notebooks nobody can move a slider, so this shows nothing there.

    Args:
        draw: draws one picture, and shows it.
        choices: for each argument, its values by label; the slider starts with the first.
    """
    if not watched():
        return
    from ipywidgets import SelectionSlider, interact

    sliders = {
        # Drawing takes longer than a drag: the picture follows when the handle rests.
        name: SelectionSlider(
            options=list(values.items()), description=name, continuous_update=False
        )
        for name, values in choices.items()
    }
    interact(draw, **sliders)
