"""The course in a Python that was not made for it, as on Colab or Kaggle."""

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys

from course_utils import paths
from nbtorchrun.errors import (
    InputError,
)
from tools import doctor, trial

NEEDED = (
    *("torchvision", "ipywidgets"),
    *(name for name in doctor.NEEDED if name not in ("torch", "IPython")),
)


def install_missing() -> None:
    """Install the packages that the notebooks need and this Python lacks; the others stay.

    Prints what it installed, and one sentence if the course is not tested with this torch. Says
    nothing otherwise.

    Raises:
        InputError: there is no torch, or pip failed.
    """
    if not importlib.util.find_spec("torch"):
        raise InputError(
            f"{sys.executable} has no torch: install torch and torchvision there, or run the "
            f"course in an environment of its own, with ./run.sh lab in {paths.ROOT}"
        )
    torch = importlib.metadata.version("torch")
    if not trial.is_tested(torch):
        print(f"This Python has torch {torch}, and {trial.TESTED}: some cells may fail.")
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    if missing:
        pip_install(*missing, f"torch=={torch}")  # a torchvision that fits the torch that is there
        print(f"Installed {', '.join(missing)}.")


def pip_install(*packages: str) -> None:
    """Let pip install packages into this Python.

    Raises:
        InputError: it failed; the text is its last line.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = trial.last_line(done.stderr)
        raise InputError(f"pip cannot install {', '.join(packages)}: {reason}")
    importlib.invalidate_caches()
