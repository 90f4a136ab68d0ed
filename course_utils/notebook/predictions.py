"""Keeps a reader's guess until the measurement: `predict("12 MB")`."""

from typing import Any

from course_utils.display import page


class Guess:
    """What the reader expects, as "12 MB"; '' for no guess."""

    def __init__(self, guess: Any = ""):
        self._guess = str(guess).strip()

    def compare(self, measured: Any) -> None:
        """Print the guess beside the measurement; nothing if there is no guess or no open page."""
        if self._guess and page.watched():
            print(f"You guessed {self._guess}. Measured: {measured}.")


predict = Guess  # a call makes the guess; its `compare` shows it, in the same units
