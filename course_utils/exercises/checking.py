"""Exercises: `check("04.2")` says whether an answer is right, and if not, what to look at.

An exercise is a function that raises `Wrong` at the first wrong value and returns what it proved.
The modules of `course_utils.exercises` hold them, one module per notebook. `check` says one of
three states: *to do*, *passed* with what was proven, or *not yet* with what to look at.
"""

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from course_utils.display import cards, page
from course_utils.display.text import capped
from course_utils.errors import InputError
from course_utils.exercises import calls, failures, refusals
from course_utils.exercises.compare import Wrong, count
from course_utils.launcher.options import Options
from course_utils.launcher.running import launch_path
from course_utils.notebook import answers, cells, files

EXERCISES = Path(__file__).resolve().parent
COLOURS = {"to do": cards.OPEN, "passed": cards.GOOD, "not yet": cards.BAD}
MARKS = {"to do": "○", "passed": "✓", "not yet": "✗"}
TIMEOUT, STALL = 60, 5  # seconds that a run may take, and that no rank may compute in
MOST_PRINTED = 8  # lines of what an answer printed that are shown
_registered: dict[str, "Exercise"] = {}
_states: dict[str, str] = {}  # by number, what `check` found last in this process


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: as in `check("04.2")`.
        title: a few words.
        test: raises `Wrong`, or returns what it proved, as lines. It is called with the
            student's function, or with nothing where the answer is a worker file.
        file: the worker file that holds the answer, or None for a function.
        without: torch's names for what the student writes; an answer may not use them.
    """

    number: str
    title: str
    test: Callable[..., list[str]]
    file: str | None = None
    without: tuple[str, ...] = ()

    @property
    def solution(self) -> str:
        """The course's own answer: the notebook's cell, or a file where none reveals it."""
        if text := cells.ours(self.number):
            return text
        return (EXERCISES / "solutions" / answers.file_of(self.number)).read_text(encoding="utf-8")

    def solution_card(self) -> dict[str, str]:
        """The solution as a notebook shows it: folded in, to be opened with a click."""
        title = f"Solution of {self.number} {html.escape(self.title)}"
        code = f"<pre>{html.escape(self.solution)}</pre>"
        page = f"<details><summary>{title}</summary>{code}</details>"
        return {"text/html": page, "text/plain": self.solution}


@dataclass(frozen=True)
class Result:
    """What `check` found.

    Attributes:
        state: "to do", "passed" or "not yet".
        lines: what was proven, or what is wrong.
    """

    exercise: Exercise
    state: str
    lines: list[str]

    def __str__(self) -> str:
        title = f"{self.exercise.number} {self.exercise.title}: {self.state}"
        return "\n".join([title, *(f"  {line}" for line in self.lines)])

    def card(self) -> str:
        """The same as HTML."""
        title = f"{self.exercise.number} {self.exercise.title}"
        said = cards.plain("\n".join(self.lines))
        return cards.card(self.state, COLOURS[self.state], title, said)


def exercise(
    number: str, title: str, file: str | None = None, without: tuple[str, ...] = ()
) -> Callable:
    """Register the decorated function as the test of an exercise; see `Exercise`."""

    def register(test: Callable[..., list[str]]) -> Callable[..., list[str]]:
        _registered[number] = Exercise(number, title, test, file, without)
        return test

    return register


def check(number: str, answer: Any = None) -> None:
    """Say whether an answer is right: *to do*, *passed* with what was proven, or *not yet*.

    Args:
        number: the exercise's number, as "04.2".
        answer: the student's function, where the exercise asks for one and not for a worker file.
    """
    found = result(number, answer)
    _states[number] = found.state
    if found.exercise.file:
        answers.note(number, found.state == "passed")
    # *To do* is plain text everywhere: notebooks are saved with it, and nbval compares it.
    _show(str(found), found.card() if found.state != "to do" else "")


def progress(notebook: str | None = None) -> None:
    """Print the state of the exercises, as `check` last found it in this kernel.

    Args:
        notebook: its number, as "04"; None for the notebooks that were begun, or else all.

    Raises:
        InputError: there is no such notebook, or it has no exercise.
    """
    wanted = [notebook] if notebook else sorted({number.partition(".")[0] for number in _states})
    found = [exercise for name in wanted or _notebooks() for exercise in exercises_of(name)]
    states = [_states.get(exercise.number, "to do") for exercise in found]
    width = max(len(exercise.title) for exercise in found)
    lines, rows = [], []
    for exercise, state in zip(found, states, strict=True):
        lines.append(f"{exercise.number}  {exercise.title:{width}}  {MARKS[state]} {state}")
        cells = (exercise.number, exercise.title, f"{MARKS[state]} {state}")
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    passed = f"{states.count('passed')} of {len(states)} passed"
    table = f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    colour = cards.GOOD if set(states) == {"passed"} else cards.OPEN
    _show("\n".join([*lines, passed]), cards.card("exercises", colour, passed, table))


check.progress = progress


def has_passed(number: str) -> bool:
    """Whether the last `check` of that exercise in this process passed."""
    return _states.get(number) == "passed"


def result(number: str, answer: Any = None) -> Result:
    """What `check` prints, as an object."""
    found = find(number)
    if not found.file and answer is None:
        raise InputError(f'{number} asks for a function: check("{number}", your_function)')
    calls.printed.clear()
    try:
        proven = _tested(found, answer)
    except NotImplementedError:
        return _unwritten(found)
    except Wrong as wrong:
        lines = wrong.message.splitlines() + [line for line in wrong.hint.splitlines() if line]
        return Result(found, "not yet", [*lines, *_printed(), f"%solution {number} shows ours."])
    return Result(found, "passed", [*proven, *_printed()])


def _tested(found: Exercise, answer: Any) -> list[str]:
    """Check that the answer is the student's own, then that it is right."""
    if found.file is None:
        refusals.check_function(answer, found.without)
        return found.test(answer)
    files.write_missing(found.file)
    refusals.check_file(found.file, found.without, found.solution)
    return found.test()


def _unwritten(found: Exercise) -> Result:
    """What to say when a stub is left: *to do*, unless another part has been written."""
    left = refusals.begun(found.file) if found.file else ""
    if not left:
        return Result(found, "to do", [])
    still = f"{left} still raises NotImplementedError. Write it too, then check again."
    return Result(found, "not yet", [still, f"%solution {found.number} shows ours."])


def _printed() -> list[str]:
    log = f"only {MOST_PRINTED} are shown"
    return [f"printed: {line}" for line in capped(calls.printed, log, MOST_PRINTED // 2, 4)]


def find(number: str) -> Exercise:
    """The exercise of that number.

    Raises:
        InputError: there is none.
    """
    if not isinstance(number, str):
        raise InputError(f'write the number of an exercise in quotes, as "04.2", not {number!r}')
    known = exercises_of(number.partition(".")[0])
    for exercise in known:
        if exercise.number == number:
            return exercise
    numbers = ", ".join(exercise.number for exercise in known)
    raise InputError(f"there is no exercise {number!r}; choose one of {numbers}")


def exercises_of(notebook: str) -> list[Exercise]:
    """The exercises of a notebook, in order.

    Raises:
        InputError: it has none.
    """
    if notebook not in _notebooks():
        known = ", ".join(_notebooks())
        raise InputError(f"there is no exercise in notebook {notebook!r}; choose one of {known}")
    import_module(f"course_utils.exercises.nb{notebook}")
    return [_registered[key] for key in sorted(_registered) if key.startswith(f"{notebook}.")]


def _notebooks() -> list[str]:
    return sorted(path.stem.removeprefix("nb") for path in EXERCISES.glob("nb[0-9]*.py"))


def _show(plain: str, card: str) -> None:
    """Show a card on an open page, and plain text elsewhere."""
    if not card or not page.watched():
        print(plain, flush=True)
        return
    from IPython.display import display

    display(page.bundle(card, plain), raw=True)


def probe(file: str | Path, nproc: int, *arguments: Any) -> list[dict[str, Any]]:
    """Run a script that calls the student's worker file, and return its findings.

    Args:
        file: its name in `course_utils/exercises/probes`; it imports the student's file.
        nproc: number of ranks.
        *arguments: passed to the script.

    Returns:
        What the script passed to `findings.report`, rank by rank, each with its `rank`.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the script found something wrong in a `findings.judging` block: its first case.
        Wrong: the run failed, with the verdict as its message; or it was ended too early.
    """
    path = EXERCISES / "probes" / file
    files.write_missing(*files.imported(path))
    run = launch_path(path, map(str, arguments), Options(nproc, TIMEOUT, STALL, show=False))
    calls.printed[:] = [
        f"rank {r.number}: {line}" for r in run.ranks for line in failures.said(r.stdout)
    ]
    ranks = count(nproc, "rank")
    findings = [
        {"rank": rank.number, **event["data"]}
        for rank in run.ranks
        for event in rank.events()
        if event["kind"] == "finding"
    ]
    if wrong := [finding for finding in findings if "wrong" in finding]:
        first = min(wrong, key=lambda finding: (finding["number"], finding["rank"]))
        raise Wrong(first["wrong"], first["hint"])
    if not run.ok:
        # Stubs raise it bare; PyTorch raises it too, with a message.
        if str(run.verdict).partition("\n")[0].endswith(" raised NotImplementedError"):
            raise NotImplementedError
        raise Wrong(f"{ranks}: {failures.verdict(run)}", failures.hint(run, path))
    if any((rank.last("end") or {}).get("how") != "finished" for rank in run.ranks):
        ended = "your file ended the script before the check was done"
        raise Wrong(f"{ranks}: {ended}", "Is there an exit() in it?")
    return findings


def probe_each(
    file: str,
    numbers: Iterable[int],
    *arguments: Any,
    hint: Callable[[int, str], str] = lambda ranks, message: "",
) -> None:
    """Run a probe on each number of ranks; `hint(ranks, message)` serves where it gives no hint."""
    for ranks in numbers:
        try:
            probe(file, ranks, *arguments)
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.hint or hint(ranks, wrong.message)) from None
