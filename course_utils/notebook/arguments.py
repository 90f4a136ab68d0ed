"""Reads the line of a magic like a command line."""

import argparse
import shlex
from collections.abc import Sequence
from typing import NoReturn

from course_utils.errors import InputError
from course_utils.launcher.options import add_flags


class Parser(argparse.ArgumentParser):
    """A parser that raises InputError with one sentence, instead of ending the process."""

    def __init__(self, name: str):
        super().__init__(prog=name, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with the usage."""
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        raise InputError(f"{self.prog}: {message} (usage: {usage})")


def parse_torchrun(words: Sequence[str]) -> argparse.Namespace:
    """The options of a `torchrun` magic; they have torchrun's names.

    Raises:
        InputError: an option is unknown, or its value is invalid.
    """
    parser = Parser("%torchrun")
    add_flags(parser)
    parser.add_argument("--as", dest="name")
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if options.name and not options.name.isidentifier():
        raise InputError(f"--as {options.name}: choose a name that is valid in Python")
    return options


def split(line: str) -> list[str]:
    """Split a magic's line into words as a shell does.

    Raises:
        InputError: it cannot be split.
    """
    try:
        return shlex.split(line)
    except ValueError:
        raise InputError(
            f"unmatched quotation mark or backslash in the line {line.strip()}: put a "
            "backslash before it, or leave it out"
        ) from None
