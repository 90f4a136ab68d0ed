"""What each rank did when."""

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.runs import Run
from course_utils.show import style


def timeline(run: Run, *, title: str, start: float = 0.0, end: float | None = None) -> None:
    """Draw a lane for each rank with the blocks its script put between `mark(...)`.

    Args:
        run: a run whose ranks marked something.
        title: what the picture shows.
        start: where the part to show begins, in seconds from the first mark.
        end: where it ends; None for the last mark.
    """
    marks = [
        each
        for each in run.timeline()
        if each["end"] >= start and (end is None or each["start"] <= end)
    ]
    names = list(dict.fromkeys(each["name"] for each in marks))
    ranks = sorted({each["rank"] for each in marks})
    axes = style.axes(0.7 + 0.7 * max(1, len(ranks)), "", "time in milliseconds")
    axes.set_title(title, loc="left", pad=26)  # the legend is below it
    for each in marks:
        axes.broken_barh(
            [(1e3 * (each["start"] - start), 1e3 * (each["end"] - each["start"]))],
            (each["rank"] - 0.35, 0.7),
            facecolors=palette.colour(names.index(each["name"])),
        )
    axes.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    axes.invert_yaxis()
    axes.set_xlim(0, None if end is None else 1e3 * (end - start))
    handles = [plt.Rectangle((0, 0), 1, 1, color=palette.colour(i)) for i in range(len(names))]
    axes.legend(handles, names, ncols=6, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    plt.show()
