"""The card of a run that went well: how it ended, its losses, and what its ranks printed."""

import html

from nbtorchrun.display import cards, lanes, text
from nbtorchrun.display.lanes import Lane
from nbtorchrun.runs import Rank, Run


def card(run: Run, shown: list[Lane]) -> str:
    """The card as HTML; of each rank it shows as many lines as its lane had, and folds the rest."""
    losses = [f"loss {lane.losses[-1]:.4g}" for lane in shown[:1] if lane.losses]
    title = " · ".join([text.headline(run), text.duration(run.seconds), *losses])
    ranks = "".join(
        _rank(rank, run, lane.lines.maxlen) for rank, lane in zip(run.ranks, shown, strict=True)
    )
    curve = lanes.curve(shown)
    command = f"<small>{html.escape(run.command)}</small>"
    return cards.card("✓", cards.GOOD, title, command, f"<div>{curve}</div>" * bool(curve), ranks)


def _rank(rank: Rank, run: Run, most: int) -> str:
    """A rank's lines: the last ones, those before them behind a click."""
    log = f'{run.name}.dir / "rank_{rank.index}/stdout.log"'
    lines = [*text.capped(text.lines(rank.stdout), log), *text.results(rank.reports)]
    if not lines:
        return ""
    before, last = lines[: -most or None], lines[-most:]
    if len(lines) <= most + 1:
        before, last = [], lines
    folded = ""
    if before:
        summary = f"<summary>{len(before)} lines before these</summary>"
        folded = f"<details>{summary}{cards.plain(chr(10).join(before))}</details>"
    said = f"{folded}{cards.plain(chr(10).join(last))}"
    return f'<div class="course-said">{cards.rank_label(rank.number)}<div>{said}</div></div>'
