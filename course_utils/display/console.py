"""The terminal, through rich: its colours, and what is printed there besides a run's own lines.

Rich is imported at first use: notebooks never need it, and the doctor also runs without it.
"""

import os
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, NoReturn

from course_utils import palette
from course_utils.runs import Run

if TYPE_CHECKING:
    from rich.console import Console, Group

GREEN, YELLOW, RED = "color(43)", "color(214)", "color(208)"  # of palette.py, for all eyes


def open_console() -> "Console":
    """Standard output: plain text when it is piped, and no colours if NO_COLOR is set."""
    from rich.console import Console

    console = Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,  # a path that is longer than a line can still be copied
    )
    console.on_broken_pipe = _raise_again
    return console


def _raise_again() -> NoReturn:
    """Leave a closed pipe to the caller, which still has to end the ranks; rich would just exit."""
    raise


def say(text: str, style: str = "", end: str = "\n") -> None:
    """Print `text` in a style; plain where rich is not installed yet."""
    try:
        console = open_console()
    except ModuleNotFoundError:
        print(text, end=end)
    else:
        console.print(text, style=style, end=end)


def wrapped(text: str, indent: int) -> str:
    """A line broken at words to fit a terminal; unchanged where it is piped.

    Args:
        indent: columns by which every line but the first is indented.
    """
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    # A path stays whole: it can be copied even if it is longer than a line.
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(lines)


def show_failure(run: Run) -> None:
    """Print why a run failed: a panel on a terminal, plain text elsewhere.

    The verdict names logs by expressions for a notebook. In a terminal, paths replace them.
    """
    console = open_console()
    logs = re.compile(rf'{run.name}\.dir / "([^"]*)"')
    console.print()
    if console.is_interactive:
        from rich.panel import Panel

        found = run.verdict
        said = logs.sub(lambda log: log[1], "\n".join([found.headline, *found.details]))
        panel = Panel(_verdict(said), title=found.kind, title_align="left", border_style=RED)
        console.print(panel, soft_wrap=False)
    else:
        console.print(logs.sub(lambda log: f"{run.dir}/{log[1]}", run.verdict.text))
    console.print(f"Logs: {run.dir}")


def _verdict(said: str) -> "Group":
    """The lines of a verdict, each wrapped to its own indentation, the ranks in their colours."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines = []
    for line in said.splitlines():
        text = Text(line.lstrip(), style="bold" if line.startswith("  >") else "")
        text.highlight_regex(r"\brank \d+", lambda rank: palette.terminal(int(rank[5:])))
        lines.append(Padding.indent(text, len(line) - len(line.lstrip())))
    return Group(*lines)
