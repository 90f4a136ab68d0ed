"""Keeps a reader's guess until the measurement: `predict("12 MB")`."""

from typing import Any

from course_utils.display import cards, page

_right: dict["Guess", bool] = {}  # the guesses that were compared; whether each was right


class Guess:
    """What the reader expects, as "12 MB"; '' for no guess."""

    def __init__(self, guess: Any = ""):
        self._guess = str(guess).strip()

    def compare(self, measured: Any) -> None:
        """Show the guess beside the measurement; nothing if there is no guess or no open page."""
        if not self._guess or not page.watched():
            return
        right = _letters(self._guess) == _letters(str(measured))
        _right[self] = right
        score = f"{sum(_right.values())} of {len(_right)} right so far"
        mark, colour = ("✓", cards.GOOD) if right else ("≠", cards.ASIDE)
        title = f"You guessed {self._guess}. Measured: {measured}."
        drawn = cards.card(mark, colour, title, f"<small>{score}</small>")
        page.show(drawn, title)


def _letters(answer: str) -> str:
    """An answer without what is only its form, so that `(A)` is `a` and `12 MB` is `12mb`."""
    return "".join(answer.lower().split()).strip("().\"'`")


predict = Guess  # a call makes the guess; its `compare` shows it, in the same units
