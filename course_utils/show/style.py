"""What all pictures share."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.display.page import watched

__all__ = ["WIDTH", "axes", "watched"]

WIDTH = 8.0  # inches: fits GitHub's page and half a laptop's screen


def axes(height: float, title: str, x: str, y: str = "") -> Axes:
    """Axes for one picture, titled and labelled; `height` in inches."""
    _, made = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    made.set_title(title, loc="left")
    made.set_xlabel(x)
    made.set_ylabel(y)
    made.spines[["top", "right"]].set_visible(False)
    return made
