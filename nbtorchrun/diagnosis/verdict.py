"""The verdict on a failed run: plain data, and the words that several rules share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from nbtorchrun.diagnosis.calls import Place
from nbtorchrun.diagnosis.evidence import Witness
from nbtorchrun.runs import Rank


class Says(Enum):
    """What a line of a verdict is about: each medium shows what it has room for."""

    FACT = "what is known"
    PLACE = "a line of the script, or its neighbour"
    RANK = "where a rank was, which its row says too"
    AGAIN = "what the finding says too"
    HINT = "what to try"
    OPTION = "what to try with an option of the launch"
    LOG = "where a rank's log is"
    OTHERS = "what became of the other ranks"


@dataclass(frozen=True)
class Line:
    """A line of a verdict.

    Attributes:
        log: the log that it leads to, below the run's folder; '' for none.
    """

    says: Says
    words: str
    log: str = ""


OTHERS_STOPPED = Line(Says.OTHERS, "The other ranks were stopped because of this.")


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

    @property
    def who(self) -> str:
        """Its ranks in words."""
        return in_words(self.ranks)


@dataclass(frozen=True)
class Verdict:
    """Why a run failed.

    Attributes:
        kind: raised, exited, killed, hung, mismatch, launcher, or stopped (by hand).
        title: the first line of its text.
        lines: what else is said to the student.
        rank: the rank to blame; None where it is not one rank.
        file: the student's file with the place to look at, where there is one.
        line: its line there.
        error: type and message of the exception to blame; '' where none is.
        finding: what the headline says; '' if the title says it.
        run: the variable that holds the run, for expressions that lead to its logs.
        ranks: the ranks of the run, with what they left behind.
        rows: what became of each rank, the blamed one first.
    """

    kind: str
    title: str
    lines: tuple[Line, ...] = ()
    rank: int | None = None
    file: str | None = None
    line: int | None = None
    error: str = ""
    finding: str = ""
    run: str = field(default="run", repr=False)
    ranks: tuple[Rank, ...] = field(default=(), repr=False)
    rows: tuple[Row, ...] = field(default=(), repr=False)

    @property
    def headline(self) -> str:
        """The finding in one sentence."""
        return self.finding or self.title

    @property
    def text(self) -> str:
        """All that is said to the student in a notebook."""
        return "\n".join([self.title, *self.written(self.lines)])

    def details(self, *without: Says) -> list[Line]:
        """The lines that say more than the headline, but for those about `without`."""
        says_more = not self.headline.startswith(self.title)
        first = [Line(Says.FACT, self.title)] if says_more else []
        return first + [each for each in self.lines if each.says not in (Says.AGAIN, *without)]

    def written(
        self, lines: tuple[Line, ...] | list[Line], log: Callable[[str], str] | None = None
    ) -> list[str]:
        """Lines as text, indented. `log` writes the way to a log; a notebook has an expression."""
        log = log or (lambda name: f'{self.run}.dir / "{name}"')
        words = (f"{each.words}{log(each.log) if each.log else ''}" for each in lines)
        return [f"  {each}" if each else "" for each in words]

    def __str__(self) -> str:
        return self.text


def verdict(
    kind: str, title: str, lines: list[Line], blamed: Witness | None, place: Place | None
) -> Verdict:
    """The verdict with these lines; it blames a rank and a place, if they are known."""
    file, line = (place.file, place.line) if place else (None, None)
    error = blamed.error.text if kind == "raised" and blamed and blamed.error else ""
    number = blamed.number if blamed else None
    return Verdict(kind, title, tuple(lines), number, file, line, error)


def fact(words: str) -> Line:
    """A line about what is known."""
    return Line(Says.FACT, words)


def hint(words: str) -> Line:
    """A line about what to try."""
    return Line(Says.HINT, words)


def excerpt(place: Place | None) -> list[Line]:
    """The line there and its two neighbours."""
    return [Line(Says.PLACE, each) for each in place.excerpt()] if place else []


def quoted(place: Place | None) -> list[Line]:
    """A place and its excerpt."""
    return [Line(Says.PLACE, str(place)), *excerpt(place)] if place else []


def names(ranks: list[Witness]) -> str:
    """The ranks in words."""
    return in_words(rank.number for rank in ranks)


def in_words(numbers: Iterable[int]) -> str:
    """Ranks by their numbers: `ranks 0, 1 and 3`."""
    *others, last = map(str, numbers)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def who_waited(ranks: list[Witness]) -> list[Line]:
    """Where each rank was when the end of another rank cut it short."""
    said = [(rank.number, whereabouts(rank)) for rank in ranks]
    return [Line(Says.RANK, f"rank {number}{words}") for number, words in said if words]


def whereabouts(rank: Witness) -> str:
    """Where a rank was when the end of another rank cut it short; '' if that is not known."""
    return f" was {'still waiting ' * rank.was_waiting}at {rank.place}" if rank.place else ""


def log_of(words: str, witness: Witness) -> Line:
    """A line that leads to a rank's log."""
    return Line(Says.LOG, f"{words}: ", f"rank_{witness.index}/stderr.log")
