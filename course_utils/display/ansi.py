"""Colours and redrawn lines, where standard output is a terminal that knows them."""

import os
import shutil
import sys

from course_utils import palette

BOLD = "1"
GREEN, YELLOW, RED = "38;5;43", "38;5;214", "38;5;208"  # of palette.py: all can tell them apart
ERASE = "\r\033[K"  # the line the cursor is in


def is_live() -> bool:
    """Whether what is printed goes to a terminal that can redraw a line."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def is_coloured() -> bool:
    """Whether colours may be used there: the user can forbid it by NO_COLOR (no-color.org)."""
    return is_live() and not os.environ.get("NO_COLOR")


def paint(text: str, *codes: str) -> str:
    """`text` in a style, where colours may be used."""
    return f"\033[{';'.join(codes)}m{text}\033[0m" if is_coloured() else text


def rank(number: int, text: str) -> str:
    """`text` in the colour of rank `number`, where colours may be used."""
    return palette.terminal(number, text) if is_coloured() else text


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns
