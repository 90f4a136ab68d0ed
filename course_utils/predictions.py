"""Keeps a reader's guess until the measurement: `predict("12 MB")`.

The answers lie in `lessons/nbNN/guesses.py`, by the id of the cell that measures, so that no page
gives them away. An answer is a text, or a function that makes one of the measured values.
"""

import re
import runpy
from collections.abc import Callable
from functools import cache
from typing import Any

from course_utils import cells, paths
from nbtorchrun.display import cards, page

LESSONS = paths.ROOT / "lessons"
NO_GUESS = "Write one between the quotes of predict, and run that cell"
THEN = "you will see it here, beside the measurement."
CHANGED = "The course's answer is for this cell as it was: undo your change to see the answer here."

_cell = _source = ""  # the id and the text of the running cell
_place: Any = None  # above the output of the running cell, for the card of a guess
_right: dict[str, bool] = {}  # whether the last guess was right, by the cell that measured
_waiting: dict[str, Callable[["Guess"], None]] = {}  # measured without a guess, by the guess's cell


def keep_place(shell: Any, info: Any) -> None:
    """Note which cell runs; if it will compare a guess on an open page, keep the card's place."""
    global _cell, _source, _place
    _cell, _source, _place = info.cell_id or "", info.raw_cell or "", None
    names = re.findall(r"(\w+)\.compare\(", _source)
    if any(isinstance(shell.user_ns.get(name), Guess) for name in names) and page.watched():
        _place = page.place()


class Guess:
    """What the reader expects, as "12 MB"; '' for no guess."""

    def __init__(self, guess: Any = ""):
        self._guess = str(guess).strip()
        self._cell = _cell
        if self._guess and (measured := _waiting.pop(self._cell, None)):
            measured(self)

    def compare(self, *measured: Any) -> None:
        """Show the guess beside the measurement; nothing if no page is open.

        Without a guess a card says so. It waits: once its cell has a guess, the card shows both.

        Args:
            measured: what the cell's answer is made of. Without it the answer needs no value. Where
                the course has no answer for the cell, this is what was measured.
        """
        global _place
        if not page.watched():
            return
        place, _place = _place, None  # the cell's next guess has a card of its own, below
        cell = _measuring_cell()
        answer = _answer(cell, measured)
        name = cell or _source
        if self._guess:
            self._show(place, name, answer)
            return
        waits = bool(place and self._cell)
        if waits:
            _waiting[self._cell] = lambda guess: guess._show(place, name, answer)
        title = f"{NO_GUESS}{'' if waits else ' and this one'}: {THEN}"
        _fill(place, cards.card("no guess yet", cards.OPEN, title), f"No guess yet. {title}")

    def _show(self, place: Any, cell: str, answer: str) -> None:
        if not answer:
            title = f"You guessed {self._guess}. {CHANGED}"
            _fill(place, cards.card("?", cards.OPEN, title), title)
            return
        right = _letters(self._guess) in {_letters(answer), _choice(answer)}
        _right[cell] = right
        score = f"{sum(_right.values())} of {len(_right)} right so far"
        mark, colour = ("✓", cards.GOOD) if right else ("≠", cards.ASIDE)
        title = f"You guessed {self._guess}. Measured: {answer}."
        _fill(place, cards.card(mark, colour, title, f"<small>{score}</small>"), title)


def _fill(place: Any, drawn: str, plain: str) -> None:
    """Show a card where its place was kept, or else below what the cell has shown."""
    if place:
        place.update(page.bundle(drawn, plain), raw=True)
    else:
        page.show(drawn, plain)


@cache
def answers() -> dict[str, str | Callable[..., str]]:
    """The answers to all predictions of the course, by the id of the cell that measures."""
    found = {}
    for path in sorted(LESSONS.glob("nb*/guesses.py")):
        found |= runpy.run_path(str(path))["ANSWERS"]
    return found


def _measuring_cell() -> str:
    """The id, in the course, of the cell that runs; '' if it is none of the course's.

    Not every page sends the ids that the notebook's file has: there, the cell is known by its text.
    """
    if _cell in answers():
        return _cell
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in cells.read(path)["cells"]:
            if cell.get("id") in answers() and "".join(cell["source"]) == _source:
                return cell["id"]
    return ""


def _answer(cell: str, measured: tuple[Any, ...]) -> str:
    """The answer, or what was measured if the course has none for the cell; '' without both."""
    answer = answers().get(cell) or str(*measured[:1])
    return answer(*measured) if callable(answer) else answer


def _choice(measured: str) -> str:
    """The letter of a multiple choice that a measurement begins with, as "c, 30 MB" does."""
    begins = re.match(r"([a-e])[:,] ", measured)
    return begins[1] if begins else _letters(measured)


def _letters(answer: str) -> str:
    """An answer without what is only its form, so that `(A)` is `a` and `12 MB` is `12mb`."""
    return "".join(answer.lower().split()).strip("().\"'`")


predict = Guess  # a call makes the guess; its `compare` shows it, in the same units
