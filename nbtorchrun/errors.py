"""The errors that a user meets."""

from collections.abc import Callable
from typing import Any, ClassVar


class LaunchError(RuntimeError):
    """A run failed; the text is the verdict.

    Attributes:
        run: the Run, with what its ranks left behind; None if nothing was started.
        shown_below: whether the page shows the verdict as a card below the error.
    """

    shown_below: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)

    def __init__(self, message: str, run: Any = None):
        super().__init__(message)
        self.run = run

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the verdict, without the launcher's own stack.

        If a card with the whole verdict follows, only the title.
        """
        title_only = self.run is not None and self.shown_below()
        return [self.run.verdict.headline if title_only else str(self)]


class Stopped(KeyboardInterrupt):
    """A run was interrupted; its ranks have been ended.

    Attributes:
        run: the Run, whose verdict says what each rank was doing.
    """

    def __init__(self, message: str, run: Any):
        super().__init__(message)
        self.run = run

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the verdict, or only its title, as for a `LaunchError`."""
        return [self.run.verdict.headline if LaunchError.shown_below() else str(self)]


class InputError(LaunchError, ValueError):
    """A call has an invalid argument; nothing was started."""
