"""What a notebook imports.

In a notebook, this import also registers the magics and starts the helper process for warm runs,
while the student still reads.
"""

import sys
from importlib import import_module
from typing import Any

# Imported at first use: a rank needs none of them and starts faster without, and run.sh works with
# nothing but Python before there is a .venv.
MODULES = {
    "data": "course_utils.data",
    "proofs": "course_utils.notebook.proofs",
    "show": "course_utils.show",
}
HOMES = {  # the modules that define the other names
    "LaunchError": "course_utils.errors",
    "check": "course_utils.exercises.checking",
    "launch": "course_utils.notebook.launching",
    "load_worker": "course_utils.notebook.files",
    "predict": "course_utils.notebook.predictions",
}

__all__ = ["LaunchError", "check", "data", "launch", "load_worker", "predict", "proofs", "show"]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(MODULES[name])
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
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
