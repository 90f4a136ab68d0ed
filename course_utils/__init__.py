"""The course's face: what a notebook imports.

In a notebook this import also registers the magics and starts the warm helper, while the student
still reads.
"""

import sys
from importlib import import_module
from typing import Any

from course_utils.check import check
from course_utils.launch import LaunchError, launch
from course_utils.notebooks import load_worker

__all__ = ["LaunchError", "check", "data", "launch", "load_worker", "proofs", "show"]


def __getattr__(name: str) -> Any:
    if name in ("data", "proofs", "show"):  # not before they are used: a rank starts faster
        return import_module(f"course_utils.{name}")
    raise AttributeError(f"module 'course_utils' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext course_utils`: the magics."""
    from course_utils import magics

    magics.register(shell)


def _enter_notebook() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return
    load_ipython_extension(shell)
    if hasattr(shell, "kernel"):
        from course_utils.launch.client import kept_agent

        kept_agent()


_enter_notebook()
