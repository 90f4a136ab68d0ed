"""Sliders over a picture, for whoever watches; what is saved is the still picture below them."""

from collections.abc import Callable, Mapping
from typing import Any

from course_utils.show import style


def slider(draw: Callable[..., None], **choices: Mapping[str, Any]) -> None:
    """Show a slider for each argument of `draw`, and what it draws with the values chosen.

    Nothing is shown where nobody can move it: under test, and in what is saved.

    Args:
        draw: draws one picture, and shows it.
        choices: for each of its arguments the values, by their labels; the first is chosen.
    """
    if not style.watched():
        return
    from ipywidgets import SelectionSlider, interact

    interact(
        draw,
        **{
            name: SelectionSlider(options=list(values.items()), description=name)
            for name, values in choices.items()
        },
    )
