"""Keeps a reader's guess until the measurement: `predict("12 MB")`."""

from typing import Any

from course_utils.display import page


class Guess:
    """What the reader expects.

    Args:
        text: the guess, as "12 MB"; '' for no guess.
    """

    def __init__(self, text: str):
        self._text = text.strip()

    def compare(self, measured: Any) -> None:
        """Print the guess beside the measurement; nothing if there is no guess or no open page."""
        if self._text and page.watched():
            print(f"You guessed {self._text}. Measured: {measured}.")


def predict(guess: Any = "") -> Guess:
    """Keep the reader's guess; `compare` shows it beside the measurement, in the same units."""
    return Guess(str(guess))
