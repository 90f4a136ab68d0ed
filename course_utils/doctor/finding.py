"""What the doctor says of one thing."""

from dataclasses import dataclass

from course_utils.display import ansi

COLOURS = {"ok": ansi.GREEN, "note": ansi.YELLOW, "problem": ansi.RED}
INDENT = 21  # columns before what was found


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        mark: `ok`; `note`, which no lab fails over; or `problem`, which one would.
        what: the thing looked at.
        found: what was found.
        remedy: what to do about it; '' where nothing needs to be done.
    """

    mark: str
    what: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = ansi.paint(f"{self.mark:<8}", COLOURS[self.mark])
        line = f"{mark} {self.what:<12}".ljust(INDENT) + f"{self.found}"
        return f"{line}\n{'':<{INDENT}} -> {self.remedy}" if self.remedy else line
