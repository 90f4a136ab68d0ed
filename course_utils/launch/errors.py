"""The errors of a launch."""

from typing import TYPE_CHECKING

from course_utils.launch import page

if TYPE_CHECKING:
    from course_utils.launch.run import Run


class LaunchError(RuntimeError):
    """A run that failed; its text is the verdict.

    Attributes:
        run: what the run left behind, to look into; None if nothing was started.
    """

    def __init__(self, message: str, run: "Run | None" = None):
        super().__init__(message)
        self.run = run

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the verdict, and not the launcher's own stack.

        On an open page only its title: the card that has it all comes below (magics.py).
        """
        whole = self.run is None or not page.watched()
        return [str(self) if whole else str(self).partition("\n")[0]]


class Stopped(KeyboardInterrupt):
    """A run that was interrupted, and whose ranks were ended."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: one line, and not the launcher's own stack."""
        return [str(self)]


class InputError(LaunchError, ValueError):
    """A call that cannot be carried out as written; nothing was started."""
