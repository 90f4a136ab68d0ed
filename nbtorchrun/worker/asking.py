"""Asks a rank how it stands; `asked.py` is the rank's side of it."""

import os
from pathlib import Path

PIPE = "asked"  # in a rank's folder


def ask(folder: Path) -> bool:
    """Ask the rank with that folder; False: nobody listens there."""
    try:
        os.close(os.open(folder / PIPE, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def ask_others(folder: Path) -> None:
    """Ask the other ranks of this machine, before this one's end makes torchrun end them."""
    for other in folder.parent.glob("rank_*"):
        if other != folder:
            ask(other)
