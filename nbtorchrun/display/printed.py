"""Verdicts that a cell prints: on an open page, each is shown as its card and not as grey text."""

import sys
from collections import deque

from nbtorchrun.diagnosis.verdict import Verdict
from nbtorchrun.display import cards, page

MOST = 20  # verdicts that are known: those of the last runs

_expected: deque[Verdict] = deque(maxlen=MOST)
_shown: set[tuple[str, str]] = set()  # the cards of the running cell: its request, and the text


def expect(verdict: Verdict) -> None:
    """From now on, show this verdict's card where a cell of an open page prints its text."""
    _expected.append(verdict)
    if not isinstance(sys.stdout, _Output):
        sys.stdout = _Output(sys.stdout)


def show(verdict: Verdict) -> None:
    """Show a verdict's card, once in a cell."""
    told = (page.request(), verdict.text)
    if told not in _shown:
        if not any(request == told[0] for request, _ in _shown):
            _shown.clear()
        _shown.add(told)
        page.show(cards.failure(verdict), verdict.text)


class _Output:
    """Standard output, but for the verdicts in it."""

    def __init__(self, stream):
        self._stream = stream
        self._after_card = False

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text; a verdict in it becomes a card, without the blank lines around it."""
        found = next((each for each in _expected if each.text in text), None)
        if found and page.watched():
            before, _, after = text.partition(found.text)
            if before.strip():
                self._stream.write(before)
            self._stream.flush()
            show(found)
            self._after_card = not after.strip()
            if not self._after_card:
                self.write(after)
        elif not (self._after_card and not text.strip()):
            self._after_card = False
            self._stream.write(text)
        return len(text)
