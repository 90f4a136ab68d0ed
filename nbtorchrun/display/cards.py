"""Cards for a page: what went wrong, where in the script, and what became of each rank."""

import html
import signal
import textwrap

from nbtorchrun import palette
from nbtorchrun.diagnosis.calls import Place
from nbtorchrun.diagnosis.verdict import Row, Says, Verdict
from nbtorchrun.display import stacks, text
from nbtorchrun.runs import Rank

# None is a rank's colour, and white on each is easy to read.
GOOD, BAD, OPEN, ASIDE = "#1A7F37", "#B3261E", "#5F6368", "#6A4BA3"
LAST = 15  # lines of a rank's log that a card holds
ONLY_SEEN = ("killed", "exited")  # kinds where the place is only that of the last call


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


def failure(verdict: Verdict) -> str:
    """The card of a failed run: the finding, the lines of the script, the ranks, what to try."""
    colour = OPEN if verdict.kind == "stopped" else BAD
    place = Place(verdict.file, verdict.line) if verdict.file and verdict.line else None
    excerpt = place.excerpt() if place else []
    # The code and the rows say these.
    rest = verdict.written(verdict.details(Says.PLACE, Says.RANK, Says.OTHERS))
    by_number = {rank.number: rank for rank in verdict.ranks}
    rows = [_row(row, by_number, verdict.rank in row.ranks) for row in verdict.rows]
    return card(
        verdict.kind,
        colour,
        verdict.headline,
        _code(place, excerpt, verdict),
        *rows,
        plain(textwrap.dedent("\n".join(rest))),
    )


def _code(place: Place | None, excerpt: list[str], verdict: Verdict) -> str:
    """Numbered lines of a script, with the marked line highlighted, and where they stand."""
    if not excerpt:
        return ""
    lines = [
        f"<b>{html.escape(line)}</b>" if line.lstrip().startswith(">") else html.escape(line)
        for line in excerpt
    ]
    seen = verdict.rows and verdict.kind in ONLY_SEEN and str(place) not in verdict.text
    caption = f"<small>{'last call seen: ' * bool(seen)}{html.escape(str(place))}</small>"
    return f'{caption}<pre class="course-code">{chr(10).join(lines)}</pre>'


def _row(row: Row, ranks: dict[int, Rank], blamed: bool) -> str:
    """What became of some ranks; the blamed one's output is open, the others' opens by a click."""
    names = " ".join(rank_label(number) for number in row.ranks)
    ended = {_end(ranks[number].exitcode) for number in row.ranks} if row.role else set()
    if row.role and row.role.startswith("failed") and len(ended) == 1:
        words = " · ".join(filter(None, [row.role, *ended, row.words]))
    else:
        words = " · ".join(filter(None, [row.role, row.words]))
    label = f"{names} {html.escape(words)}"
    if blamed:
        first = ranks[row.ranks[0]]
        open_ = plain(_last(first.stdout))
        folded = _folded("stderr", _last(first.stderr)) + _folded(
            "stack", stacks.shown(first.stack)
        )
        return f'<div class="course-row">{label}{open_}{folded}</div>'
    said = "".join(_said(ranks[number], len(row.ranks) > 1) for number in row.ranks)
    return f"<details><summary>{label}</summary>{said or 'They printed nothing.'}</details>"


def _said(rank: Rank, named: bool) -> str:
    """The last lines and the stack of a rank."""
    said = [("stdout", _last(rank.stdout)), ("stderr", _last(rank.stderr))]
    said.append(("stack", stacks.shown(rank.stack)))
    name = f"rank {rank.number} " * named
    return "".join(f"<small>{name}{what}</small>{plain(lines)}" for what, lines in said if lines)


def _folded(name: str, lines: str) -> str:
    return f"<details><summary>{name}</summary>{plain(lines)}</details>" if lines else ""


def rank_label(number: int) -> str:
    """A rank's name in its colour."""
    return f'<span class="course-rank" style="--rank:{palette.colour(number)}">rank {number}</span>'


def _last(log: str) -> str:
    return "\n".join(map(text.shown, text.lines(log)[-LAST:]))


def _end(exitcode: int | None) -> str:
    """How a rank ended, in words."""
    if exitcode is None:
        return "stopped from outside"
    if exitcode < 0:
        return f"ended by signal {-exitcode} ({signal.strsignal(-exitcode)})"
    return f"exit status {exitcode}"
