# @title Get the course { display-mode: "form" }
"""Get the course, where this Python has none: on Colab, on Kaggle, beside a notebook alone."""

import importlib.util
import subprocess
import sys
from pathlib import Path

REPOSITORY = ""  # the address of the course's git repository

if not importlib.util.find_spec("course_utils") or "install_missing" in globals():
    course = Path.cwd().parent  # where the notebook stands in a checkout
    if not (course / "course_utils").is_dir():
        course = Path.cwd() / "course"  # /content/course on Colab, /kaggle/working/course on Kaggle
    if not (course / "course_utils").is_dir():
        if not REPOSITORY:
            raise RuntimeError(
                "this notebook does not know where the course is: write the address of its git "
                "repository into REPOSITORY in this cell, and run the cell again"
            )
        cloned = subprocess.run(
            ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, course],
            capture_output=True,
            text=True,
        )
        if cloned.returncode:
            raise RuntimeError(
                f"git cannot get the course (on Kaggle, turn on Internet first): {cloned.stderr}"
            )
    sys.path.insert(0, str(course))
    from tools.guest import install_missing

    install_missing()
