"""Reads the line of a magic like a command line."""

import argparse
import shlex
from collections.abc import Sequence
from typing import NoReturn

from nbtorchrun.errors import InputError
from nbtorchrun.launcher.options import add_flags


class MagicParser(argparse.ArgumentParser):
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
    parser = MagicParser("%torchrun")
    add_flags(parser)
    parser.add_argument("--standalone", action="store_true", help=argparse.SUPPRESS)  # it always is
    parser.add_argument("--as", dest="name")
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(_with_hyphens(words))
    if options.name and not options.name.isidentifier():
        raise InputError(f"--as {options.name}: choose a name that is valid in Python")
    return options


def _with_hyphens(words: Sequence[str]) -> list[str]:
    """The words with torchrun's older spelling of options, `--nproc_per_node`, in today's."""
    script = next((at for at, word in enumerate(words) if word.endswith(".py")), len(words))
    names = [word.partition("=") for word in words[:script]]
    today = [
        (name.replace("_", "-") if name.startswith("--") else name) + equals + value
        for name, equals, value in names
    ]
    return [*today, *words[script:]]


def split(line: str) -> list[str]:
    """Split a magic's line into words as a shell does, without a comment (`# ...`) at its end.

    Raises:
        InputError: it cannot be split.
    """
    try:
        words = shlex.split(line)
        return words[: words.index("#")] if "#" in words else words
    except ValueError:
        raise InputError(
            f"unmatched quotation mark or backslash in the line {line.strip()}: put a "
            "backslash before it, or leave it out"
        ) from None
