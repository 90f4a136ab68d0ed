"""Sentences that are broken to fit a terminal, but never within a command of the course."""

import re
from typing import TextIO

from nbtorchrun.display import console

# Half of a command does something else: `./run.sh` alone trains the Transformer.
COMMAND = re.compile(r"\./run\.sh (?:demo )?\w+(?: -n \d+| --[\w-]+)*")


def wrapped(text: str, indent: int, stream: TextIO | None = None) -> str:
    """As `console.wrapped`, with each command on one line: it can be copied."""
    kept = COMMAND.sub(lambda found: found[0].replace(" ", "\0"), text)
    return console.wrapped(kept, indent, stream).replace("\0", " ")
