"""How often each whole number was seen."""

from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from course_utils import palette
from course_utils.show import style


def histogram(groups: Mapping[str, Sequence[int]], *, title: str, x: str, y: str) -> None:
    """Draw how often each number occurs, the groups stacked on each other.

    Args:
        groups: label to whole numbers.
        title: what the picture shows.
        x: the numbers' name, with their unit.
        y: what is counted.
    """
    axes = style.axes(3.0, title, x, y)
    below: Counter[int] = Counter()
    for number, (label, values) in enumerate(groups.items()):
        counts = Counter(values)
        places = sorted(counts)
        axes.bar(
            places,
            [counts[place] for place in places],
            bottom=[below[place] for place in places],
            color=palette.colour(number),
            label=label,
        )
        below.update(counts)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    plt.show()
