"""What all pictures share: figures, boxes and sliders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.show import inline
from nbtorchrun.display.page import watched

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
    _, made = plt.subplots(rows, columns, **options)
    _titled(made.flat, title)
    for one in made.flat if bare else ():
        one.axis("off")
    return list(made.flat)


def mosaic(places: str, height: float, title: str, **options: Any) -> list[Axes]:
    """Axes of several sizes under one title, in the order in which their letters first stand.

    Args:
        places: a letter for each place of the grid, its rows with ; between: "AB;CC" is two above
            a wide one.
        height: of the whole figure, in inches.
        title: of the whole figure.
        **options: of `plt.subplot_mosaic`.
    """
    options |= {"figsize": (WIDTH, height), "layout": "constrained"}
    _, made = plt.subplot_mosaic(places, **options)
    _titled(made.values(), title)
    return list(made.values())


def _titled(every: Iterable[Axes], title: str) -> None:
    for one in every:
        one.spines[["top", "right"]].set_visible(False)
        one.figure.suptitle(title, x=0.01, ha="left")


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

    A picture is drawn once, and it is grey while it is drawn. In tests and in saved notebooks
    nobody can move a slider, so this shows nothing there.

    Args:
        draw: draws one picture, and shows it.
        choices: for each argument, its values by label. Numbers are sorted; the slider starts with
            the first value given.
    """
    if not watched():
        return
    from IPython.display import display
    from IPython.utils.capture import capture_output
    from ipywidgets import Output, SelectionSlider, VBox

    # Drawing takes longer than a drag: the picture follows when the handle rests.
    sliders = {
        name: SelectionSlider(
            options=_in_order(values),
            value=next(iter(values.values())),
            description=name,
            continuous_update=False,
        )
        for name, values in choices.items()
    }
    place = Output()
    drawn: dict[tuple[str, ...], tuple[dict[str, Any], ...]] = {}

    def show(_: Any = None) -> None:
        chosen = tuple(each.label for each in sliders.values())
        if chosen not in drawn:
            place.add_class("course-busy")
            try:
                with capture_output() as captured, inline.quickly():
                    draw(**{name: each.value for name, each in sliders.items()})
            finally:
                place.remove_class("course-busy")
            printed = {"output_type": "stream", "name": "stdout", "text": captured.stdout}
            pictures = (
                {"output_type": "display_data", "data": each.data, "metadata": each.metadata}
                for each in captured.outputs
            )
            drawn[chosen] = (*[printed] * bool(captured.stdout), *pictures)
        place.outputs = drawn[chosen]

    for each in sliders.values():
        each.observe(show, "value")
    show()
    box = VBox([*sliders.values(), place])
    box.add_class("widget-interact")
    display(box)


def _in_order(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The labels and values of a slider, numbers from small to large."""
    if all(isinstance(value, (int, float)) for value in values.values()):
        return sorted(values.items(), key=lambda item: item[1])
    return list(values.items())
