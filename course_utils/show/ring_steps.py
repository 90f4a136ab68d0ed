"""Who holds what after each step around a ring."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils import palette
from course_utils.runs import Run
from course_utils.show import style
from course_utils.show.sliders import slider

COLUMNS = 3
Step = dict[int, tuple[list[int], int | None]]  # rank -> what it holds, and the chunk it sends


def ring(run: Run, *, title: str) -> None:
    """Draw the chunks of every rank at the beginning of each step, and which of them it sends.

    In JupyterLab a slider goes from step to step; the strip of all steps is there in any view.

    Args:
        run: each rank called `report(step=S, holds=[...], sends=C)` at the beginning of step S,
            and once at the end with `sends=None`; `holds` has a number for each chunk. Rank r
            brought 10^r, so that the digits of a sum tell whose values are in it.
        title: what the picture shows.

    Raises:
        ValueError: no rank reported a step.
    """
    steps = recorded(run)
    if not steps:
        raise ValueError("no rank reported a step: call report(step=0, holds=[...], sends=0)")

    def one(step: int) -> None:
        _, axes = plt.subplots(figsize=(0.75 * style.WIDTH, 3.2), layout="constrained")
        axes.axis("off")
        _panel(axes, steps, step, size=10)
        plt.show()

    slider(one, step={str(number + 1): number for number in range(len(steps))})
    rows = -(-len(steps) // COLUMNS)
    figure, every = plt.subplots(
        rows, COLUMNS, figsize=(style.WIDTH, 0.5 + 1.75 * rows), layout="constrained", squeeze=False
    )
    figure.suptitle(title, x=0.01, ha="left")
    for axes in every.flat:
        axes.axis("off")
    for axes, number in zip(every.flat, range(len(steps)), strict=False):
        _panel(axes, steps, number, size=6.5)
    plt.show()


def recorded(run: Run) -> list[Step]:
    """What the ranks of `run` reported, step by step."""
    found: dict[int, Step] = {}
    for report in run.reports:
        if "holds" in report:
            step = found.setdefault(report["step"], {})
            step[report["rank"]] = (report["holds"], report["sends"])
    return [found[number] for number in sorted(found)]


def parts(value: int) -> int:
    """How many ranks' values are in a sum of powers of ten."""
    return sum(digit != "0" for digit in str(value))


def _panel(axes: Axes, steps: list[Step], number: int, size: float) -> None:
    """One step: a row for each rank, a column for each chunk, the chunk that is sent framed."""
    step, ranks = steps[number], len(steps[number])
    for rank, (holds, sends) in sorted(step.items()):
        axes.text(-0.2, rank + 0.5, f"rank {rank}", ha="right", va="center", fontsize=size)
        for chunk, value in enumerate(holds):
            share = parts(value) / ranks
            look = {"facecolor": "#009E73", "alpha": 0.12 + 0.68 * max(0, share - 1 / ranks)}
            axes.add_patch(Rectangle((chunk + 0.04, rank + 0.1), 0.92, 0.8, **look))
            axes.text(
                chunk + 0.5,
                rank + 0.5,
                f"{value:0{ranks}d}",
                ha="center",
                va="center",
                fontsize=size,
                fontweight="bold" if share == 1 else "normal",
            )
            if chunk == sends:
                frame = {"fill": False, "edgecolor": palette.colour(rank), "linewidth": 1.8}
                axes.add_patch(Rectangle((chunk + 0.04, rank + 0.1), 0.92, 0.8, **frame))
    axes.set_xlim(-1.3, ranks)
    axes.set_ylim(ranks, -0.2)
    last = number == len(steps) - 1
    axes.set_title("at the end" if last else f"step {number + 1} begins", fontsize=size + 2)
