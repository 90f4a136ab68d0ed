"""The errors that a user of the course meets."""

from collections.abc import Callable
from typing import Any, ClassVar


class LaunchError(RuntimeError):
    """A run that failed; its text is the verdict.

    Attributes:
        run: what the run left behind, to look into; None if nothing was started.
        shown_below: says whether the page shows the verdict as a card below the error.
    """

    shown_below: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)

    def __init__(self, message: str, run: Any = None):
        super().__init__(message)
        self.run = run

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the verdict without the launcher's own stack.

        Only its title where a card with the whole of it follows.
        """
        title_only = self.run is not None and self.shown_below()
        return [str(self).partition("\n")[0] if title_only else str(self)]


class Stopped(KeyboardInterrupt):
    """A run that was interrupted, and whose ranks were ended."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: one line, and not the launcher's own stack."""
        return [str(self)]


class InputError(LaunchError, ValueError):
    """A call that cannot be carried out as written; nothing was started."""
