"""A pytest plugin: begin with the notebooks that take longest.

Else a worker would begin with one of them when the others have nothing left to do.
"""

import re

import pytest

LONGEST_FIRST = ["07", "05", "03", "00", "06", "04", "02", "01"]  # by processor time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by notebook; the cells of one keep their order."""
    items.sort(key=place)


def place(item: pytest.Item) -> int:
    """Where an item belongs: an unknown notebook at the start, what is none of them at the end."""
    number = re.search(r"\b(\d\d)_", item.nodeid)
    if not number:
        return len(LONGEST_FIRST)
    return LONGEST_FIRST.index(number[1]) if number[1] in LONGEST_FIRST else -1
