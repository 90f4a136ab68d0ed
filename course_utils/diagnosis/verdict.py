"""The verdict on a failed run: plain data, and the words that several rules share."""

from dataclasses import dataclass, field

from course_utils.diagnosis.calls import Place
from course_utils.diagnosis.evidence import Evidence, Witness
from course_utils.runs import Rank

OTHERS_STOPPED = "  The other ranks were stopped because of this."


@dataclass(frozen=True)
class Row:
    """What became of one rank, or of several that fared alike.

    Attributes:
        ranks: their numbers.
        role: in a few words, as `failed first` or `ended as a consequence`.
        words: where they were, as the text says it; '' if that is not known.
    """

    ranks: tuple[int, ...]
    role: str
    words: str = ""


@dataclass(frozen=True)
class Verdict:
    """Why a run failed.

    Attributes:
        kind: raised, exited, killed, hung, mismatch, launcher, or stopped (by hand).
        text: all that is said to the student.
        rank: the rank to blame; None where it is not one rank.
        file: the student's file with the place to look at, where there is one.
        line: its line there.
        ranks: the ranks of the run, with what they left behind.
        finding: what the headline says; '' if the first line of the text says it.
        repeated: the line of the text that says the same as the finding.
        rows: what became of each rank, the blamed one first.
    """

    kind: str
    text: str
    rank: int | None = None
    file: str | None = None
    line: int | None = None
    ranks: tuple[Rank, ...] = field(default=(), repr=False)
    finding: str = ""
    repeated: str = field(default="", repr=False)
    rows: tuple[Row, ...] = field(default=(), repr=False)

    @property
    def headline(self) -> str:
        """The finding in one sentence."""
        return self.finding or self.text.partition("\n")[0]

    @property
    def details(self) -> list[str]:
        """The lines of the text that say more than the headline."""
        said = (self.headline, self.repeated)
        return [line for line in self.text.splitlines() if line not in said]

    def __str__(self) -> str:
        return self.text


def verdict(kind: str, lines: list[str], blamed: Witness | None, place: Place | None) -> Verdict:
    """The verdict with these lines; it blames a rank and a place, if they are known."""
    file, line = (place.file, place.line) if place else (None, None)
    return Verdict(kind, "\n".join(lines), blamed.number if blamed else None, file, line)


def excerpt(place: Place | None) -> list[str]:
    """The line there and its two neighbours."""
    return place.excerpt() if place else []


def quoted(place: Place | None) -> list[str]:
    """A place and its excerpt."""
    return [f"  {place}", *excerpt(place)] if place else []


def names(ranks: list[Witness]) -> str:
    """The ranks in words: `ranks 0, 1 and 3`."""
    *others, last = [str(rank.number) for rank in ranks]
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def who_waited(ranks: list[Witness]) -> list[str]:
    """Where each rank was when the end of another rank cut it short."""
    return [f"  rank {rank.number}{words}" for rank in ranks if (words := whereabouts(rank))]


def whereabouts(rank: Witness) -> str:
    """Where a rank was when the end of another rank cut it short; '' if that is not known."""
    return f" was {'still waiting ' * rank.was_waiting}at {rank.place}" if rank.place else ""


def log_of(evidence: Evidence, witness: Witness) -> str:
    """Where a rank's log is, as an expression for the notebook: a path would differ every run."""
    return f'{evidence.run.name}.dir / "rank_{witness.index}/stderr.log"'
