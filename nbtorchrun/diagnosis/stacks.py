"""Reads the stacks that `faulthandler` wrote in the ranks of a run."""

import re
from pathlib import Path
from typing import NamedTuple

from nbtorchrun.runs import Run


class Frame(NamedTuple):
    """One call of a stack: the file with its folders, the line, and the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} in {self.function}"


def frames(text: str) -> list[Frame]:
    """The frames of the thread that runs the script, the innermost call first.

    The frames of the launcher and of torchrun around the script are left out.
    """
    thread = text.partition("Current thread")[2].partition("\n\n")[0]
    found = re.findall(r'File "(.+?)", line (\d+) in (\S+)', thread)
    stack = [Frame(file, int(line), function) for file, line, function in found]
    starts = [at for at, frame in enumerate(stack) if frame.file.endswith("worker/bootstrap.py")]
    return [f for f in stack[: starts[0] if starts else None] if "/nbtorchrun/" not in f.file]


def stacks(run: Run) -> list[list[Frame] | None]:
    """The stack of every rank when the run was stopped; None for a rank that had ended."""
    return [None if rank.exitcode is not None else frames(rank.stack) for rank in run.ranks]
