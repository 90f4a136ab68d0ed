"""What a notebook imports.

In a notebook, this import also registers the magics and starts the helper process for warm runs,
while the student still reads.
"""

import logging
import sys
from typing import Any

# Without triton, torch says on stderr that it counts no FLOPs of triton's kernels. We have none.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

# Imported at first use: a rank needs none of them and starts faster without, and run.sh works with
# nothing but Python before there is a .venv.
HOMES = {
    "LaunchError": "course_utils.errors:LaunchError",
    "check": "course_utils.checking.check:check",
    "data": "course_utils.data",
    "launch": "course_utils.notebook.launching:launch",
    "load_worker": "course_utils.notebook.files:load_worker",
    "predict": "course_utils.notebook.predictions:predict",
    "proofs": "course_utils.notebook.proofs",
    "show": "course_utils.show",
}

__all__ = ["LaunchError", "check", "data", "launch", "load_worker", "predict", "proofs", "show"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'course_utils' has no attribute {name!r}")
    from pkgutil import resolve_name

    return resolve_name(HOMES[name])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext course_utils`: the magics."""
    from course_utils.notebook import magics

    magics.register(shell)


def _refuse_another_python() -> None:
    """Say in one sentence that the kernel belongs to another Python than the course's.

    Raises:
        InputError: it is too old, or lacks packages.
    """
    lacks = "is older than Python 3.11" if sys.version_info < (3, 11) else ""
    if not lacks:
        from importlib.util import find_spec

        from course_utils.doctor import NEEDED

        lacks = ", ".join(name for name in NEEDED if not find_spec(name))
        lacks = lacks and f"has no {lacks}"
    if lacks:
        from course_utils.errors import InputError

        raise InputError(
            f"the kernel of this notebook is not the course's: its Python, {sys.executable}, "
            f"{lacks}. Choose the course's kernel (.venv/bin/python of the checkout), or open the "
            "notebook with ./run.sh lab"
        )


def _enter_notebook() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return
    _refuse_another_python()
    load_ipython_extension(shell)
    if hasattr(shell, "kernel"):
        from course_utils.launcher.client import kept_agent

        kept_agent()


_enter_notebook()
