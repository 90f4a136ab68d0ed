"""The magics `%%torchrun` and `%torchrun`, and the cards of runs on an open page."""

from collections.abc import Callable
from typing import Any

from nbtorchrun import settings
from nbtorchrun.arguments import parse_torchrun, split
from nbtorchrun.diagnosis.verdict import Verdict
from nbtorchrun.display import cards, page
from nbtorchrun.errors import LaunchError, Stopped
from nbtorchrun.launcher import interrupts
from nbtorchrun.launcher.options import flags
from nbtorchrun.launching import launch

_shell: Any  # the one that the magics are registered with
_write: Callable[[str, str], None]  # of a cell's file name and its text
_dressing = ""  # the cell whose output has the page's style: without it, figures are white on dark


def write_script(file: str, cell: str) -> None:
    """Write a cell to its file in the folder of the scripts."""
    settings.replace(settings.script_path(file), cell.encode("utf-8", "surrogateescape"))


def register(shell: Any, write: Callable[[str, str], None] = write_script) -> None:
    """Register the magics with an IPython shell, and show each failed run as a card.

    Args:
        shell: IPython's.
        write: writes the cell of a `%%torchrun`, given the name of its file and its text.
    """
    global _shell, _write
    _shell, _write = shell, write
    shell.register_magic_function(torchrun, "line_cell", "torchrun")
    shell.events.register("pre_run_cell", interrupts.watch)
    shell.events.register("post_run_cell", show_failure)
    shell.events.register("post_run_cell", dress_page)
    LaunchError.shown_below = staticmethod(page.watched)
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(Verdict, verdict_bundle)


def torchrun(line: str, cell: str | None = None) -> None:
    """`%%torchrun [-n N] [--timeout S] [--stall S] [--as NAME] FILE [args]`: write and launch."""
    options = parse_torchrun(split(line))
    if cell is not None:
        _write(options.file, cell)
    name = options.name or "run"
    namespace = _shell.user_ns
    try:
        namespace[name] = launch(options.file, *options.arguments, name=name, **flags(options))
    except (LaunchError, Stopped) as error:
        if error.run:  # to look into what it left behind
            namespace[name] = error.run
        raise


def verdict_bundle(verdict: Verdict, **_: Any) -> dict[str, str]:
    """A verdict as a card on an open page; elsewhere Python shows it as usual."""
    return page.bundle(cards.failure(verdict), verdict.text) if page.watched() else {}


def show_failure(result: Any) -> None:
    """On an open page, show the card of the run that made a cell fail."""
    error = result.error_in_exec
    if isinstance(error, (LaunchError, Stopped)) and error.run and page.watched():
        from IPython.display import display

        verdict = error.run.verdict
        # On JupyterLab's page it replaces the error above it, which says only the headline.
        drawn = f'<div class="course-instead">{cards.failure(verdict)}</div>'
        display(page.bundle(drawn, verdict.text), raw=True)


def dress_page(result: Any) -> None:
    """After the first cell that an open page runs, give the page its style.

    Again when that cell runs again: its new outputs have replaced the one with the style.
    """
    global _dressing
    if page.watched() and (not _dressing or result.info.cell_id == _dressing):
        _dressing = result.info.cell_id or "on Colab, cells have no id"
        page.place()
