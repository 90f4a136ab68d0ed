"""A pytest plugin: begin with the notebooks that take longest, in the browser and then under nbval.

Else a worker would begin with one of them when the others have nothing left to do. The browser's
tests stay together, because to start it and JupyterLab anew costs seconds.
"""

import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.__main__ import as_a_whole, is_cell

LONGEST_FIRST = ["07", "05", "03", "00", "06", "04", "02", "01"]  # by processor time


class WholeNotebooks(LoadScopeScheduling):
    """All cells of a notebook go to one worker, every other test to the next that is free."""

    def _split_scope(self, nodeid: str) -> str:
        return as_a_whole(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Tell pytest-xdist how to share out the tests."""
    config.option.loadscopereorder = False  # else notebooks come by their number of cells
    return WholeNotebooks(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by notebook; the cells of one keep their order."""
    items.sort(key=place)


def place(item: pytest.Item) -> tuple[bool, int]:
    """Where an item belongs: an unknown notebook at the start, what is none of them at the end."""
    number = re.search(r"\b(\d\d)_", item.nodeid)
    order = -1 if number else len(LONGEST_FIRST)
    if number and number[1] in LONGEST_FIRST:
        order = LONGEST_FIRST.index(number[1])
    return is_cell(item.nodeid), order
