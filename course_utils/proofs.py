"""What a notebook claims, with the worst value measured and the bound of each claim."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nbtorchrun.display import cards, page
from nbtorchrun.formats import measured, number
from nbtorchrun.runs import Run

_KEYS = ("claim", "on", "worst", "bound")
_HEAD = ("claim", "measured on", "worst ≤", "bound")
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

    @property
    def measured(self) -> str:
        """The worst value as tables show it: `< 0.05` if it was only rounded up to its bound."""
        return measured(self.worst, self.bound)


def record(claim: str, on: str, worst: float, bound: float) -> None:
    """Keep a claim measured in the notebook itself.

    Raises:
        AssertionError: the measurement does not support it.
    """
    proof = Proof(claim, on, worst, bound)
    _rows[claim] = proof
    measured = f"measured {worst:g}, bound {bound:g}"
    if not proof.holds:  # not an `assert`, which python -O leaves out
        raise AssertionError(f"the claim fails: {claim} (on {on}): {measured}")


def add(run: Run) -> None:
    """Keep every claim the ranks of `run` reported.

    Raises:
        AssertionError: a claim does not hold, or the run reported none.
    """
    found = reported(run)
    if not found:
        wanted = "call report(claim=, on=, worst=, bound=)"
        raise AssertionError(f"{run.command} reported no claim: {wanted}")
    for proof in found:
        record(proof.claim, proof.on, proof.worst, proof.bound)


def reported(run: Run) -> list[Proof]:
    """The claims among a run's reports: `report(claim=, on=, worst=, bound=)`."""
    return [Proof(*(report[key] for key in _KEYS)) for report in run.reports if is_claim(report)]


def is_claim(report: Mapping[str, Any]) -> bool:
    """Whether a report is a claim."""
    return all(key in report for key in _KEYS)


def worst_of_each(rows: Iterable[Proof]) -> list[Proof]:
    """A row for each claim: of those that several ranks reported, the worst."""
    found: dict[tuple, list[Proof]] = {}
    for row in rows:
        found.setdefault((row.claim, row.on, row.bound), []).append(row)
    return [max(same, key=lambda row: (not row.holds, row.worst)) for same in found.values()]


def table() -> None:
    """Show the claims measured so far in this notebook: a card on an open page, elsewhere text."""
    rows = list(_rows.values())
    page.show(card(rows), text(rows))


def card(rows: list[Proof]) -> str:
    """`rows` as a card, with a mark for each claim that holds."""
    drawn = "<tr>" + "".join(f"<th>{name}</th>" for name in ("", *_HEAD)) + "</tr>"
    for row in rows:
        cells = (mark(row), row.claim, row.on, row.measured, number(row.bound))
        drawn += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
    held = sum(row.holds for row in rows)
    colour = cards.GOOD if held == len(rows) else cards.BAD
    return cards.card("claims", colour, f"{held} of {len(rows)} hold", f"<table>{drawn}</table>")


def mark(row: Proof) -> str:
    """Whether a claim holds, as a sign."""
    return "✓" if row.holds else "✗"


def text(rows: list[Proof]) -> str:
    """`rows` as a table."""
    cells = [_HEAD]
    cells += [(row.claim, row.on, row.measured, number(row.bound)) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
