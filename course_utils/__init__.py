"""The course's face: what a notebook imports.

In a notebook this import also registers the magics and starts the warm helper, while the student
still reads.
"""

import sys
from importlib import import_module
from typing import Any

from course_utils.errors import LaunchError
from course_utils.exercises.checking import check
from course_utils.notebook.files import load_worker
from course_utils.notebook.launching import launch
from course_utils.notebook.predictions import predict

# Imported at first use: a rank, which needs none of them, starts faster.
LATER = {
    "data": "course_utils.data",
    "proofs": "course_utils.notebook.proofs",
    "show": "course_utils.show",
}

__all__ = ["LaunchError", "check", "data", "launch", "load_worker", "predict", "proofs", "show"]


def __getattr__(name: str) -> Any:
    if name in LATER:
        return import_module(LATER[name])
    raise AttributeError(f"module 'course_utils' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext course_utils`: the magics."""
    from course_utils.notebook import magics

    magics.register(shell)


def _enter_notebook() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return
    load_ipython_extension(shell)
    if hasattr(shell, "kernel"):
        from course_utils.launcher.client import kept_agent

        kept_agent()


_enter_notebook()
