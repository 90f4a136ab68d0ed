"""A run that has ended, as a block of plain text that is the same every time."""

import math
from typing import Any

from nbtorchrun.formats import measured, values
from nbtorchrun.runs import Run, lines

HEAD, TAIL = 8, 4  # lines of a rank that are shown when it printed more than both together
WIDTH = 200  # characters of a line that are shown


def block(run: Run) -> str:
    """What stays in the notebook: the command, the outcome and the lines of each rank."""
    shown_lines = [run.command, headline(run)]
    for rank in run.ranks:
        label = f"rank {rank.number}"
        log = f'{run.name}.dir / "rank_{rank.index}/stdout.log"'
        for line in capped(lines(rank.stdout), log):
            shown_lines.append(f"{label} │ {line}")
        shown_lines += [f"{label}   {values}" for values in results(rank.reports)]
    return "\n".join(shown_lines)


def headline(run: Run) -> str:
    """For example `4 ranks · gloo · cpu · ok`."""
    return " · ".join(filter(None, [ranks(run), run.place, "ok" if run.ok else run.verdict.kind]))


def ranks(run: Run) -> str:
    """For example `4 ranks`."""
    return f"{len(run.ranks)} rank" + ("s" if len(run.ranks) > 1 else "")


def duration(seconds: float) -> str:
    """For example `0.12 s`, `3.4 s`, `11 s` or `2 min 5 s`."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.{2 if seconds < 1 else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def capped(lines: list[str], log: str, head: int = HEAD, tail: int = TAIL) -> list[str]:
    """`lines`; if there are many, only the first and last, and how many were left out."""
    if len(lines) <= head + tail + 1:
        return [shown(line) for line in lines]
    rest = f"... {len(lines) - head - tail} more lines: {log}"
    return [*map(shown, lines[:head]), rest, *map(shown, lines[-tail:])]


def shown(line: str) -> str:
    """A line as a screen would show it: what follows the last carriage return, not too long."""
    line = line.rstrip("\r").rpartition("\r")[2]
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}... ({len(line)} characters)"


def results(reports: list[dict[str, Any]]) -> list[str]:
    """The results among reports, a line for each. A report with a `step` is no result."""
    return [values(_below(report)) for report in reports if "step" not in report]


def _below(report: dict[str, Any]) -> dict[str, Any]:
    """The report of a claim, with its worst value as tables show it; others as they are."""
    found = report.get("worst"), report.get("bound")
    return {**report, "worst": measured(*found)} if all(map(can_be_drawn, found)) else report


def progress(report: dict[str, Any], room: float = math.inf) -> str:
    """How far a rank is, from a report of a step out of a total: `step 3 of 40   loss 0.7`.

    A step may be of another unit: `report(step=3, total=40, unit="epoch")`. Of the other values,
    the first ones are shown, as many as fit into `room` columns.
    """
    said = f"{report.get('unit', 'step')} {report['step']} of {report['total']}"
    for name in report:
        if name in ("step", "total", "unit"):
            continue
        longer = f"{said}   {values({name: report[name]})}"
        if len(longer) > room:
            break
        said = longer
    return said


def share_done(report: dict[str, Any]) -> float | None:
    """How far a rank is, from 0 to 1; None if the report has no numbers for it."""
    step, total = report.get("step"), report.get("total")
    if not (can_be_drawn(step) and can_be_drawn(total) and total):
        return None
    return min(1.0, max(0.0, step / total))


def can_be_drawn(value: Any) -> bool:
    """Whether a reported value can be drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
