"""Keeps a reader's guess until the measurement: `predict("12 MB")`."""

import re
from typing import Any

from course_utils.display import cards, page

_right: dict["Guess", bool] = {}  # the guesses that were compared; whether each was right
_place: Any = None  # above the output of the running cell, for the card of a guess


def keep_place(shell: Any, source: str) -> None:
    """If a cell will compare a guess on an open page, keep the card's place above its output."""
    global _place
    _place = None
    names = re.findall(r"(\w+)\.compare\(", source)
    guesses = [made for name in names if isinstance(made := shell.user_ns.get(name), Guess)]
    if any(guess.is_made() for guess in guesses) and page.watched():
        _place = page.place()


class Guess:
    """What the reader expects, as "12 MB"; '' for no guess."""

    def __init__(self, guess: Any = ""):
        self._guess = str(guess).strip()

    def is_made(self) -> bool:
        """Whether the reader guessed at all."""
        return bool(self._guess)

    def compare(self, measured: Any) -> None:
        """Show the guess beside the measurement; nothing if there is no guess or no open page."""
        global _place
        if not self.is_made() or not page.watched():
            return
        right = _letters(self._guess) in {_letters(str(measured)), _choice(str(measured))}
        _right[self] = right
        score = f"{sum(_right.values())} of {len(_right)} right so far"
        mark, colour = ("✓", cards.GOOD) if right else ("≠", cards.ASIDE)
        title = f"You guessed {self._guess}. Measured: {measured}."
        drawn = cards.card(mark, colour, title, f"<small>{score}</small>")
        if _place:
            _place.update(page.bundle(drawn, title), raw=True)
            _place = None  # the cell's next guess has a card of its own, below
        else:
            page.show(drawn, title)


def _choice(measured: str) -> str:
    """The letter of a multiple choice that a measurement begins with, as "c, 30 MB" does."""
    begins = re.match(r"([a-e])[:,] ", measured)
    return begins[1] if begins else _letters(measured)


def _letters(answer: str) -> str:
    """An answer without what is only its form, so that `(A)` is `a` and `12 MB` is `12mb`."""
    return "".join(answer.lower().split()).strip("().\"'`")


predict = Guess  # a call makes the guess; its `compare` shows it, in the same units
