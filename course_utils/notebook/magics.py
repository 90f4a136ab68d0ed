"""The magics `%%worker`, `%%torchrun`, `%torchrun`, `%%ours` and `%solution`, and the cards."""

from typing import Any

from course_utils import paths
from course_utils.diagnosis.verdict import Verdict
from course_utils.display import cards, page
from course_utils.errors import LaunchError, Stopped
from course_utils.launcher.options import flags
from course_utils.notebook import predictions
from course_utils.notebook.arguments import MagicParser, parse_torchrun, split
from course_utils.notebook.files import write
from course_utils.notebook.launching import launch

_cell_id = ""  # of the cell that runs
_dressing = ""  # the cell whose output has the page's style: without it, figures are white on dark


def register(shell: Any) -> None:
    """Register the magics with an IPython shell, and show each failed run as a card."""
    shell.register_magic_function(worker, "cell", "worker")
    shell.register_magic_function(torchrun, "line_cell", "torchrun")
    shell.register_magic_function(ours, "cell", "ours")
    shell.register_magic_function(solution, "line", "solution")
    shell.events.register("pre_run_cell", remember_cell)
    shell.events.register(
        "pre_run_cell", lambda info: predictions.keep_place(shell, info.raw_cell or "")
    )
    shell.events.register("post_run_cell", show_failure)
    shell.events.register("post_run_cell", dress_page)
    LaunchError.shown_below = staticmethod(page.watched)
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(Verdict, verdict_bundle)


def verdict_bundle(verdict: Verdict, **_: Any) -> dict[str, str]:
    """A verdict as a card on an open page; elsewhere Python shows it as usual."""
    return page.bundle(cards.failure(verdict), verdict.text) if page.watched() else {}


def dress_page(result: Any) -> None:
    """After the first cell that an open page runs, give the page the course's style.

    Again when that cell runs again: its new outputs have replaced the one with the style.
    """
    global _dressing
    if page.watched() and (not _dressing or result.info.cell_id == _dressing):
        _dressing = result.info.cell_id or "on Colab, cells have no id"
        page.place()


def remember_cell(info: Any) -> None:
    """Keep the id of the cell that is about to run; pages send it, but nbclient does not."""
    global _cell_id
    _cell_id = info.cell_id or ""


def show_failure(result: Any) -> None:
    """On an open page, show the card of the run that made a cell fail."""
    error = result.error_in_exec
    if isinstance(error, (LaunchError, Stopped)) and error.run and page.watched():
        from IPython.display import display

        verdict = error.run.verdict
        # On JupyterLab's page it replaces the error above it, which says only the headline.
        drawn = f'<div class="course-instead">{cards.failure(verdict)}</div>'
        display(page.bundle(drawn, verdict.text), raw=True)


def worker(line: str, cell: str) -> None:
    """`%%worker [--append] FILE [--ours NN.M]`: write the cell to `workers/FILE`."""
    parser = MagicParser("%%worker")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--ours", metavar="NN.M", default="")
    parser.add_argument("file")
    options = parser.parse_args(split(line))
    print(write(options.file, cell, options.append, options.ours, _cell_id))
    if mistake := syntax_error(options.file):
        print(mistake)


def syntax_error(file: str) -> str:
    """Where Python cannot read a worker file, in one sentence; '' if it can."""
    try:
        compile((paths.workers() / file).read_bytes(), file, "exec")
    except SyntaxError as error:  # its lines are those of the file
        return f"workers/{file}, line {error.lineno}: SyntaxError: {error.msg}"
    return ""


def torchrun(line: str, cell: str | None = None) -> None:
    """`%%torchrun [-n N] [--timeout S] [--stall S] [--as NAME] FILE [args]`: write and launch."""
    options = parse_torchrun(split(line))
    if cell is not None:
        write(options.file, cell, cell_id=_cell_id)
    name = options.name or "run"
    namespace = _shell().user_ns
    try:
        namespace[name] = launch(options.file, *options.arguments, name=name, **flags(options))
    except (LaunchError, Stopped) as error:
        if error.run:  # to look into what it left behind
            namespace[name] = error.run
        raise


def ours(line: str, cell: str) -> None:
    """`%%ours 01.1`: run our answer, unless the student's has passed its check in this kernel."""
    from course_utils.checking.check import has_passed

    number = line.strip()
    if has_passed(number):
        print(f"{number}: your answer has passed its check, so the course uses it from here on")
        return
    _shell().run_cell(cell).raise_error()
    print(f"{number}: ours runs from here on")


def solution(line: str) -> None:
    """`%solution 04.2`: show the course's own solution of an exercise, folded."""
    from IPython.display import display

    from course_utils.checking.registry import find

    display(find(line.strip()).solution_card(), raw=True)


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()
