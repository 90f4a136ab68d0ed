"""What a notebook imports.

In a notebook, this import also registers the magics and starts the helper process for warm runs,
while the student still reads.
"""

import logging
import sys
from pathlib import Path
from typing import Any

from course_utils import paths
from nbtorchrun import settings

# Without triton, torch says on stderr that it counts no FLOPs of triton's kernels. We have none.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

# A kernel of another Python lacks some of these.
NEEDED = ("torch", "numpy", "matplotlib", "IPython", "psutil", "rich", "filelock")

# Imported at first use: a rank needs none of them and starts faster without, and run.sh works with
# nothing but Python before there is a .venv. With its colon, a module that cannot be imported says
# why; without, resolve_name would ask for it here again.
HOMES = {
    "LaunchError": "nbtorchrun.errors:LaunchError",
    "check": "course_utils.checking.check:check",
    "data": "course_utils.data:",
    "launch": "nbtorchrun.launching:launch",
    "lesson": "course_utils.show.lesson:lesson",
    "links": "course_utils.links:",
    "load_worker": "course_utils.files:load_worker",
    "palette": "nbtorchrun.palette:",
    "pictures": "course_utils.show.lesson:pictures",
    "predict": "course_utils.predictions:predict",
    "proofs": "course_utils.proofs:",
    "show": "course_utils.show:",
}

__all__ = ["LaunchError", "check", "data", "launch", "load_worker", "predict", "proofs", "show"]


def _script_path(script: str) -> Path:
    from course_utils import files

    return files.script_path(script)


settings.configure(
    folder=paths.workers,
    home=paths.home,
    home_variable="COURSE_HOME",
    missing=_script_path,
    advice="No notebook has a cell that writes it. Write it with %%worker {}",
    preload=("torchvision",),
)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'course_utils' has no attribute {name!r}")
    from pkgutil import resolve_name

    return resolve_name(HOMES[name])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext course_utils`: the magics."""
    from course_utils import magics

    magics.register(shell)


def _refuse_another_python() -> None:
    """Say in one sentence that the kernel belongs to another Python than the course's.

    Raises:
        InputError: it is too old, or lacks packages.
    """
    lacks = "is older than Python 3.11" if sys.version_info < (3, 11) else ""
    if not lacks:
        from importlib.util import find_spec

        lacks = ", ".join(name for name in NEEDED if not find_spec(name))
        lacks = lacks and f"has no {lacks}"
    if not __debug__:
        from nbtorchrun.errors import InputError

        raise InputError(
            "this kernel runs without assertions (PYTHONOPTIMIZE or python -O), so a cell whose "
            "assert fails would pass: unset PYTHONOPTIMIZE where you start Jupyter, and restart "
            "the kernel"
        )
    if lacks:
        from nbtorchrun.errors import InputError

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
        from nbtorchrun.launcher.client import kept_agent

        kept_agent()


_enter_notebook()
