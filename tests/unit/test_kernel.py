"""What the import of the package does in a notebook whose kernel is another Python's."""

import subprocess
import sys

import pytest

from course_utils import paths

IN_A_KERNEL = """
import importlib.util, sys
from IPython.core.interactiveshell import InteractiveShell
{another}
shell = InteractiveShell.instance()
shell.kernel = None
shell.run_cell("import course_utils")
"""
OTHERS = {
    "find = importlib.util.find_spec\n"
    "importlib.util.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)": (
        "has no torch"
    ),
    "sys.version_info = (3, 10, 2)": "is older than Python 3.11",
}


@pytest.mark.parametrize(("another", "said"), OTHERS.items(), ids=OTHERS.values())
def test_a_kernel_of_another_python_is_refused_in_one_sentence(another, said):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_KERNEL.format(another=another)],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == (
        f"the kernel of this notebook is not the course's: its Python, {sys.executable}, {said}. "
        "Choose the course's kernel (.venv/bin/python of the checkout), or open the notebook with "
        "./run.sh lab"
    ), done.stderr


@pytest.mark.parametrize("name", ["data", "links", "show"])
def test_what_an_import_lacks_is_said_by_its_name(name):
    lacking = "import sys; sys.modules['psutil'] = sys.modules['numpy'] = None; import course_utils"
    done = subprocess.run(
        [sys.executable, "-c", f"{lacking}; course_utils.{name}"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of "), done.stderr
