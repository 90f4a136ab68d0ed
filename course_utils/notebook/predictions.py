"""A reader's guess, kept until the measurement: `predict("12 MB")`."""

from typing import Any

from course_utils.display import page


class Guess:
    """What the reader expects.

    Args:
        text: the guess, as "12 MB"; '' is none.
    """

    def __init__(self, text: str):
        self._text = text.strip()

    def compare(self, measured: Any) -> None:
        """Print the guess beside what was measured; nothing without a guess or without a reader."""
        if self._text and page.watched():
            print(f"You guessed {self._text}. Measured: {measured}.")


def predict(guess: Any = "") -> Guess:
    """Keep the reader's guess; `compare` shows it beside the measurement, in the same units."""
    return Guess(str(guess))
