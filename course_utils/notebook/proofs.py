"""What a notebook claims, with the worst value measured and the bound of each claim."""

import html
from dataclasses import dataclass

from course_utils.display import cards, page
from course_utils.formats import number
from course_utils.runs import Run

_KEYS = ("claim", "on", "worst", "bound")
_rows: dict[str, "Proof"] = {}


@dataclass(frozen=True)
class Proof:
    """A measured claim.

    Attributes:
        claim: one sentence.
        on: what it was measured on.
        worst: the worst value seen; the claim holds if it is at most `bound`.
        bound: the largest value at which the claim holds.
    """

    claim: str
    on: str
    worst: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the measurement supports the claim; not-a-number supports nothing."""
        return self.worst <= self.bound


def record(claim: str, on: str, worst: float, bound: float) -> None:
    """Keep a claim measured in the notebook itself.

    Raises:
        AssertionError: the measurement does not support it.
    """
    proof = Proof(claim, on, worst, bound)
    _rows[claim] = proof
    measured = f"measured {worst:g}, bound {bound:g}"
    assert proof.holds, f"the claim fails: {claim} (on {on}): {measured}"


def add(run: Run) -> None:
    """Keep every claim the ranks of `run` reported.

    Raises:
        AssertionError: a claim does not hold, or the run reported none.
    """
    found = reported(run)
    assert found, f"{run.command} reported no claim: call report(claim=, on=, worst=, bound=)"
    for proof in found:
        record(proof.claim, proof.on, proof.worst, proof.bound)


def reported(run: Run) -> list[Proof]:
    """The claims among a run's reports: `report(claim=, on=, worst=, bound=)`."""
    return [
        Proof(*(report[key] for key in _KEYS))
        for report in run.reports
        if all(key in report for key in _KEYS)
    ]


def table() -> None:
    """Show the claims measured so far in this notebook: a card on an open page, elsewhere text."""
    rows = list(_rows.values())
    page.show(card(rows), text(rows))


def card(rows: list[Proof]) -> str:
    """`rows` as a card, with a mark for each claim that holds."""
    head = ("", "claim", "measured on", "worst", "bound")
    drawn = "<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"
    for row in rows:
        cells = (mark(row), row.claim, row.on, number(row.worst), number(row.bound))
        drawn += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
    held = sum(row.holds for row in rows)
    colour = cards.GOOD if held == len(rows) else cards.BAD
    return cards.card("claims", colour, f"{held} of {len(rows)} hold", f"<table>{drawn}</table>")


def mark(row: Proof) -> str:
    """Whether a claim holds, as a sign."""
    return "✓" if row.holds else "✗"


def text(rows: list[Proof]) -> str:
    """`rows` as a table."""
    cells = [("claim", "measured on", "worst ≤", "bound")]
    cells += [(row.claim, row.on, number(row.worst), number(row.bound)) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
