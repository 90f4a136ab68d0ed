"""How many bytes each rank sends and receives."""

from collections.abc import Mapping

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.runs import Run
from course_utils.show import style


def bytes_per_rank(runs: Mapping[str, Run], *, title: str) -> None:
    """Draw two bars for each rank, what it sent above what it received, run beside run.

    Args:
        runs: label to a run whose ranks called `report(sent=..., received=...)`, in bytes.
        title: what the picture shows.
    """
    most = max(len(run.ranks) for run in runs.values())
    figure, every = plt.subplots(
        1,
        len(runs),
        figsize=(style.WIDTH, 0.9 + 0.42 * most),
        layout="constrained",
        sharex=True,
        squeeze=False,
    )
    figure.suptitle(title, x=0.01, ha="left")
    figure.supxlabel("MB sent (filled) and received (hollow)", fontsize=10)
    for axes, (label, run) in zip(every.flat, runs.items(), strict=True):
        for report in run.reports:
            if "sent" not in report:
                continue
            rank, colour = report["rank"], palette.colour(report["rank"])
            axes.barh(rank - 0.2, report["sent"] / 1e6, 0.36, color=colour)
            received = {"facecolor": "none", "edgecolor": colour, "linewidth": 1.4}
            axes.barh(rank + 0.2, report["received"] / 1e6, 0.34, **received)
        axes.set_yticks(range(len(run.ranks)), [f"rank {r}" for r in range(len(run.ranks))])
        axes.invert_yaxis()
        axes.set_title(label, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    plt.show()
