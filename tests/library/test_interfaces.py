"""The list of what the library replaces or uses although it is private is true, and whole."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "nbtorchrun" / "INTERFACES.md"
ROWS = re.findall(
    r"^\| `([\w.]+):([\w.]+)`.*?\| `([\w/]+\.py)` \|.*\| `([^`]+)` \|$", LIST.read_text(), re.M
)
# What a rank or the agent does to names of other modules: they are set there, or are private.
REPLACES = re.compile(
    r"^\s*(?:setattr\((?:dist|distributed_c10d|module|os),|dist\.\w+\.\w+ = |[\w.]*_c10d\.\w+ = |"
    r"multiprocessing\.\w+\.\w+ = |ProcessContext\.|importlib\.reload|atexit\._|threading\._)",
    re.M,
)


def test_the_list_is_read():
    assert len(ROWS) == LIST.read_text().count("\n| `") >= 15


@pytest.mark.parametrize(("module", "name", "used_in", "test"), ROWS, ids=[r[1] for r in ROWS])
def test_an_interface_is_still_there_and_so_is_its_test(module, name, used_in, test):
    found = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert re.search(rf"\b{name.split('.')[-1]}\b", (ROOT / "nbtorchrun" / used_in).read_text())
    file, _, function = test.partition("::")
    text = (ROOT / file).read_text()
    assert not function or f"def {function}(" in text


def test_every_file_that_replaces_something_is_in_the_list():
    listed = {used_in for _, _, used_in, _ in ROWS}
    for path in (ROOT / "nbtorchrun").rglob("*.py"):
        name = str(path.relative_to(ROOT / "nbtorchrun"))
        if REPLACES.search(path.read_text()) and name not in OF_ITS_OWN:
            assert name in listed, name


# `os._exit` and its siblings, by which a rank may leave unseen: they are public.
OF_ITS_OWN = {"worker/ending.py"}
