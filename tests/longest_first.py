"""A pytest plugin: begin with the notebooks that take longest, in the browser and then under nbval.

Else a worker would begin with one of them when the others have nothing left to do. The browser's
tests stay together, because to start it and JupyterLab anew costs seconds.
"""

import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

LONGEST_FIRST = ["07", "05", "03", "00", "06", "04", "02", "01"]  # by processor time
NBVAL = ".ipynb::"


class WholeNotebooks(LoadScopeScheduling):
    """All cells of a notebook go to one worker, every other test to the next that is free."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::")[0] if NBVAL in nodeid else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Tell pytest-xdist how to share out the tests."""
    config.option.loadscopereorder = False  # or the order of a notebook's number of cells
    return WholeNotebooks(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by notebook; the cells of one keep their order."""
    items.sort(key=place)


def place(item: pytest.Item) -> tuple[bool, int]:
    """Where an item belongs: an unknown notebook at the start, what is none of them at the end."""
    under_nbval = NBVAL in item.nodeid
    number = re.search(r"\b(\d\d)_", item.nodeid)
    if not number:
        return under_nbval, len(LONGEST_FIRST)
    order = LONGEST_FIRST.index(number[1]) if number[1] in LONGEST_FIRST else -1
    return under_nbval, order
