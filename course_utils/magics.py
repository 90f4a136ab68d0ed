"""The course's own magics, `%%worker` and `%solution`, beside those of nbtorchrun."""

from typing import Any

from course_utils import paths, predictions
from course_utils.files import write
from nbtorchrun import magics
from nbtorchrun.arguments import MagicParser, split

_cell_id = ""  # of the cell that runs


def register(shell: Any) -> None:
    """Register the magics with an IPython shell, and show each failed run as a card."""
    magics.register(shell, write=lambda file, cell: write(file, cell, cell_id=_cell_id))
    shell.register_magic_function(worker, "cell", "worker")
    shell.register_magic_function(solution, "line", "solution")
    shell.events.register("pre_run_cell", remember_cell)
    shell.events.register("pre_run_cell", lambda info: predictions.keep_place(shell, info))


def remember_cell(info: Any) -> None:
    """Keep the id of the cell that is about to run; pages send it, but nbclient does not."""
    global _cell_id
    _cell_id = info.cell_id or ""


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


def solution(line: str) -> None:
    """`%solution 04.2`: show the course's own solution of an exercise, folded."""
    from IPython.display import display

    from course_utils.exercises import find

    display(find(line.strip()).solution_card(), raw=True)
