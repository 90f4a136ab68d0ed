"""Cards for a page: what went wrong, where in the script, and each rank's last lines."""

import html
import signal
from typing import TYPE_CHECKING

from course_utils import palette
from course_utils.diagnosis.calls import Place
from course_utils.display import text
from course_utils.runs import Rank

if TYPE_CHECKING:
    from course_utils.diagnosis.verdict import Verdict

GOOD, BAD, OPEN = "#009E73", "#D55E00", "#777777"
LAST = 15  # lines of a rank's log that a card holds


def card(kind: str, colour: str, title: str, *parts: str) -> str:
    """A card as HTML.

    Args:
        kind: the label, in a word or two.
        colour: the colour of the edge.
        title: plain text.
        parts: pieces of HTML, shown one below the other.
    """
    return (
        f'<article class="course-card" data-kind="{html.escape(kind)}" style="--kind:{colour}">'
        f"<header><i>{html.escape(kind)}</i> {html.escape(title)}</header>{''.join(parts)}"
        "</article>"
    )


def plain(lines: str) -> str:
    """Text as HTML, with its line breaks kept."""
    return f"<pre>{html.escape(lines.rstrip())}</pre>" if lines.strip() else ""


def failure(verdict: "Verdict") -> str:
    """The card of a failed run: its verdict, the lines of the script, and the ranks, folded."""
    title, _, body = verdict.text.partition("\n")
    place = Place(verdict.file, verdict.line) if verdict.file and verdict.line else None
    excerpt = place.excerpt() if place else []
    lines = "\n".join([*excerpt, ""])  # with its end: no part of a longer line
    before, _, after = f"{body}\n".partition(lines) if excerpt else (body, "", "")
    ranks = map(_rank, verdict.ranks)
    return card(verdict.kind, BAD, title, plain(before), _code(excerpt), plain(after), *ranks)


def _code(excerpt: list[str]) -> str:
    """Numbered lines of a script, with the marked line highlighted."""
    lines = [
        f"<b>{html.escape(line)}</b>" if line.lstrip().startswith(">") else html.escape(line)
        for line in excerpt
    ]
    return f'<pre class="course-code">{chr(10).join(lines)}</pre>' if lines else ""


def _rank(rank: Rank) -> str:
    """How a rank ended. A click unfolds its last lines and its stack."""
    said = [(name, _last(log)) for name, log in (("stdout", rank.stdout), ("stderr", rank.stderr))]
    said.append(("stack", rank.stack.strip()))
    parts = "".join(f"<small>{name}</small>{plain(lines)}" for name, lines in said if lines)
    label = (
        f'<span class="course-rank" style="--rank:{palette.colour(rank.number)}">'
        f"rank {rank.number}</span> {_end(rank.exitcode)}"
    )
    return f"<details><summary>{label}</summary>{parts or 'It printed nothing.'}</details>"


def _last(log: str) -> str:
    return "\n".join(map(text.shown, text.lines(log)[-LAST:]))


def _end(exitcode: int | None) -> str:
    """How a rank ended, in words."""
    if exitcode is None:
        return "stopped from outside"
    if exitcode < 0:
        return f"ended by signal {-exitcode} ({signal.strsignal(-exitcode)})"
    return f"exit status {exitcode}"
