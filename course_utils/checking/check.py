"""Exercises: `check("04.2")` says whether an answer is right, and if not, what to look at.

An exercise is a file, `lessons/nbNN/exercise_NN_M.py`, whose cases run on the ranks and raise
`Wrong` at the first wrong value. `check` says one of three states: *to do*, *passed* with what was
proven, or *not yet* with what to look at.
"""

import html
from dataclasses import dataclass
from typing import Any

from course_utils import answers, files
from course_utils.checking import calls, probes, refusals
from course_utils.checking.compare import Wrong
from course_utils.exercises import Exercise, exercises_of, find, notebooks
from nbtorchrun.display import cards, page
from nbtorchrun.display.text import capped
from nbtorchrun.errors import InputError

COLOURS = {"to do": cards.OPEN, "passed": cards.GOOD, "not yet": cards.BAD}
MARKS = {"to do": "○", "passed": "✓", "not yet": "✗"}
MOST_PRINTED = 8  # lines of what an answer printed that are shown
_states: dict[str, str] = {}  # by number, what `check` found last in this process
_tries: dict[str, int] = {}  # by number, how often it found *not yet*


@dataclass(frozen=True)
class Result:
    """What `check` found.

    Attributes:
        state: "to do", "passed" or "not yet".
        lines: what was proven, or what is wrong.
        hint: those among the lines that lead to the mistake.
    """

    exercise: Exercise
    state: str
    lines: list[str]
    hint: tuple[str, ...] = ()

    def __str__(self) -> str:
        title = f"{self.exercise.number} {self.exercise.title}: {self.state}"
        return "\n".join([title, *(f"  {line}" for line in self.lines)])

    def card(self) -> str:
        """The same as HTML: what was found, the hint and the way out set apart."""
        number = self.exercise.number
        out = way_out(number)
        found = [line for line in self.lines if line not in (*self.hint, out)]
        parts = [cards.plain("\n".join(found))]
        if self.hint:
            parts.append(f'<div class="course-hint">{cards.plain(chr(10).join(self.hint))}</div>')
        if self.state == "not yet" and _tries.get(number, 0) > 1:  # the first try is the student's
            parts.append(f'<p class="course-out">{out}</p>')
        if self.state == "to do":
            parts.append('<p class="course-out">Write it in the cell above, then check again.</p>')
        if self.state == "passed" and (following := _next(number)):
            said = html.escape(f"Next: {following.number} {following.title}")
            parts.append(f'<p class="course-out">{said}</p>')
        return cards.card(
            self.state, COLOURS[self.state], f"{number} {self.exercise.title}", *parts
        )


def way_out(number: str) -> str:
    """The line that says where our answer is."""
    return f"%solution {number} shows ours."


def _next(number: str) -> Exercise | None:
    """The exercise after that one, in its notebook."""
    known = exercises_of(number.partition(".")[0])
    after = [each for each in known if each.number > number]
    return after[0] if after else None


def check(number: str, answer: Any = None) -> None:
    """Say whether an answer is right: *to do*, *passed* with what was proven, or *not yet*.

    Args:
        number: the exercise's number, as "04.2".
        answer: refused; an earlier edition of the course took functions.
    """
    found = result(number, answer)
    _states[number] = found.state
    _tries[number] = _tries.get(number, 0) + (found.state == "not yet")
    answers.note(number, found.state == "passed")
    page.show(found.card(), str(found))


def progress(notebook: str | None = None) -> None:
    """Print the state of the exercises, as `check` last found it, in an earlier kernel too.

    Args:
        notebook: its number, as "04"; None for the notebooks that were begun, or else all.

    Raises:
        InputError: there is no such notebook, or it has no exercise.
    """
    begun = _states or answers.passed()
    wanted = [notebook] if notebook else sorted({number.partition(".")[0] for number in begun})
    found = [each for name in wanted or notebooks() for each in exercises_of(name)]
    states = [_states.get(each.number) or _earlier(each.number) for each in found]
    width = max(len(each.title) for each in found)
    lines, rows = [], []
    for each, state in zip(found, states, strict=True):
        lines.append(f"{each.number}  {each.title:{width}}  {MARKS[state]} {state}")
        cells = (each.number, each.title, f"{MARKS[state]} {state}")
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    passed = f"{states.count('passed')} of {len(states)} passed"
    table = f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    colour = cards.GOOD if set(states) == {"passed"} else cards.OPEN
    drawn = cards.card("exercises", colour, passed, table)
    page.show(drawn, "\n".join([*lines, passed]))


def _earlier(number: str) -> str:
    """The state of an exercise that was not checked in this kernel."""
    return "passed" if number in answers.passed() else "to do"


check.progress = progress


def result(number: str, answer: Any = None) -> Result:
    """What `check` prints, as an object."""
    found = find(number)
    if answer is not None:
        raise InputError(
            f"{number} checks a file: write your answer in the cell that begins with "
            f'%%worker {found.file}, run that cell, and then check("{number}") alone'
        )
    calls.printed.clear()
    try:
        _test(found)
    except NotImplementedError:
        return _unwritten(found)
    except Wrong as wrong:
        hint = tuple(line for line in wrong.hint.splitlines() if line)
        lines = [*wrong.message.splitlines(), *hint, *_printed(), way_out(number)]
        return Result(found, "not yet", lines, hint)
    return Result(found, "passed", [*found.proven, *_printed()])


def _test(exercise: Exercise) -> None:
    """Check that the answer is the student's own, then that it is right."""
    files.write_missing(exercise.file)
    as_given = exercise.as_given and refusals.is_as_given(exercise.file, exercise.as_given)
    if as_given or refusals.is_a_stub(exercise.file):  # whatever else is missing
        raise NotImplementedError
    refusals.check_file(exercise.file, exercise.without, exercise.ours)
    probes.run(exercise)


def _unwritten(found: Exercise) -> Result:
    """What to say when a stub is left: *to do*, unless another part has been written."""
    left = refusals.begun(found.file)
    if not left:
        return Result(found, "to do", [])
    still = f"{left} still raises NotImplementedError. Write it too, then check again."
    return Result(found, "not yet", [still, way_out(found.number)])


def _printed() -> list[str]:
    log = f"only {MOST_PRINTED} are shown"
    return [f"printed: {line}" for line in capped(calls.printed, log, MOST_PRINTED // 2, 4)]
