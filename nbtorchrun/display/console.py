"""The terminal, through rich: its colours, and what is printed there besides a run's own lines.

Rich is imported at first use: notebooks never need it, and the doctor also runs without it.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, NoReturn, TextIO

from nbtorchrun import palette
from nbtorchrun.diagnosis.verdict import Line, Says, Verdict
from nbtorchrun.runs import Run

if TYPE_CHECKING:
    from rich.console import Console, Group

GREEN, YELLOW, RED = "color(43)", "color(214)", "color(208)"  # of palette.py, for all eyes


def open_console() -> "Console":
    """Standard output: plain text when it is piped, and no colours if NO_COLOR is set."""
    from rich.console import Console

    if getattr(sys.stdout, "errors", "") == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no · shows ?
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


def wrapped(text: str, indent: int, stream: TextIO | None = None) -> str:
    """A line broken at words to fit a terminal; unchanged where it is piped.

    A line with columns, which two blanks or more part, goes on below its last column.

    Args:
        indent: columns by which every line but the first is indented.
        stream: where it will be printed; None for standard output.
    """
    if not (stream or sys.stdout).isatty():
        return text
    width = shutil.get_terminal_size().columns
    columns = [gap.end() for gap in re.finditer(r"\S  +", text) if gap.end() <= 3 * width // 4]
    indent = columns[-1] if columns and len(text) > width else indent
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


def command_line(command: str) -> str:
    """A command that fits a terminal, and can still be copied; unchanged where it is piped."""
    if not sys.stdout.isatty():
        return command
    width = shutil.get_terminal_size().columns - len(" \\")
    first, *words = map(shlex.quote, shlex.split(command))
    rows = [first]
    for word in words:
        if len(rows[-1]) + 1 + len(word) <= width:
            rows[-1] += f" {word}"
        else:
            rows.append(f"    {word}")
    return " \\\n".join(rows)


def show_failure(run: Run) -> None:
    """Print why a run failed: a panel on a terminal, plain text elsewhere.

    For a notebook, the verdict names logs by expressions. In a terminal, paths replace them.
    """
    console, found = open_console(), run.verdict
    console.print()
    if console.is_interactive:
        from rich.panel import Panel

        panel = Panel(_verdict(found), title=found.kind, title_align="left", border_style=RED)
        console.print(panel, soft_wrap=False)
    else:
        lines = found.written(found.lines, log=lambda name: f"{run.dir}/{name}")
        console.print("\n".join([found.title, *lines]))
    console.print(f"Logs: {run.dir}")


def _verdict(found: Verdict) -> "Group":
    """The lines of a verdict: words wrapped, code cropped, the ranks in their colours."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    def drawn(words: str, code: bool = False) -> Text:
        marked = "bold" if code and words.startswith(">") else ""
        text = Text(words, marked, no_wrap=code, overflow="ellipsis" if code else "fold")
        text.highlight_regex(r"\brank \d+", lambda rank: palette.terminal(int(rank[5:])))
        return text

    lines = [
        Padding.indent(drawn(written.removeprefix("  "), _is_code(line)), 2)
        for line in _ranks_once(found)
        for written in found.written([line], log=str)
    ]
    return Group(drawn(found.headline), *lines)


def _is_code(line: Line) -> bool:
    """Whether a line is one of a script, and not the place where it stands."""
    return line.says is Says.PLACE and line.words.startswith((" ", ">"))


def _ranks_once(found: Verdict) -> list[Line]:
    """What a verdict says below its headline; ranks that stand alike share a line.

    The blamed rank's line comes last of these: the code below it is where that rank stands.
    """
    lines = found.details()
    if found.kind not in ("hung", "stopped") or all(each.says is not Says.RANK for each in lines):
        return lines
    rows = sorted(found.rows, key=lambda row: found.rank in row.ranks)
    ranks = [Line(Says.RANK, f"{row.who} {row.words or row.role}") for row in rows]
    first = next(n for n, each in enumerate(lines) if each.says is Says.RANK)
    rest = [each for each in lines[first:] if each.says is not Says.RANK]
    return [*lines[:first], *ranks, *rest]
