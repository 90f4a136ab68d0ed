"""Each exercise: its stub is to do, its solution passes, each plausible mistake is named."""

import json
from importlib import import_module

import pytest

from course_utils import check as say
from course_utils import paths
from course_utils.checking.check import result
from course_utils.checking.registry import EXERCISES, exercises_of, find, notebooks
from course_utils.errors import InputError
from course_utils.notebook import cells
from exercises.mutants.changed import changed

MODULES = [
    import_module(f"exercises.mutants.{path.stem}")
    for path in sorted((EXERCISES / "mutants").glob("*.py"))
]
MUTANTS = {
    number: wrong for module in MODULES for number, wrong in getattr(module, "MUTANTS", {}).items()
}
CASES = [
    pytest.param(number, changed(number, *parts), said, id=f"{number} {mistake}")
    for number, mutants in MUTANTS.items()
    for mistake, *parts, said in mutants
]
RIGHT = [
    pytest.param(number, changed(number, *parts), id=f"{number} {way}")
    for module in MODULES
    for number, answers in getattr(module, "RIGHT", {}).items()
    for way, *parts in answers
]


def answer_with(number: str, source: str) -> list:
    """Put an answer where `check` looks for it; gives what else `check` is to be called with."""
    if find(number).file:
        (paths.workers() / find(number).file).write_text(source)
        return []
    names: dict = {}
    exec(source, names)
    return [list(names.values())[-1]]  # the function that was defined last


def stub(number: str) -> str:
    """What the notebook has in place of an answer."""
    if find(number).file:
        return cells.sources()[find(number).file]
    (path,) = paths.NOTEBOOKS.glob(f"{number.partition('.')[0]}_*.ipynb")
    sources = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    (check,) = [i for i, source in enumerate(sources) if source.startswith(f'check("{number}"')]
    return sources[check - 1]


@pytest.fixture(autouse=True)
def no_answers_left():
    yield
    for path in paths.workers().glob("exercise_*.py"):
        path.unlink()


@pytest.mark.parametrize("number", MUTANTS)
def test_the_stub_of_the_notebook_is_to_do(number):
    assert result(number, *answer_with(number, stub(number))).state == "to do"


@pytest.mark.parametrize("number", ["01.4", "07.3"])
def test_a_right_answer_passes_after_its_notebook_was_saved_with_it(number, monkeypatch):
    saved = cells.sources() | {find(number).file: find(number).solution}
    monkeypatch.setattr(cells, "sources", lambda: saved)
    assert result(number, *answer_with(number, find(number).solution)).state == "passed"


def test_our_version_is_refused_after_its_notebook_was_saved_with_it(monkeypatch):
    answer = "from ring_allreduce import ring_reduce_scatter as reduce_scatter\n"
    saved = cells.sources() | {find("04.2").file: answer}
    monkeypatch.setattr(cells, "sources", lambda: saved)
    assert "imports ring_allreduce: that is the course's own" in str(
        result("04.2", *answer_with("04.2", answer))
    )


@pytest.mark.parametrize("number", MUTANTS)
def test_the_solution_passes_and_says_what_was_proven(number, capsys):
    say(number, *answer_with(number, find(number).solution))
    first, *proven = capsys.readouterr().out.splitlines()
    assert first == f"{number} {find(number).title}: passed"
    assert proven


@pytest.mark.parametrize(("number", "source"), RIGHT)
def test_an_answer_that_is_right_in_another_way_passes(number, source):
    found = result(number, *answer_with(number, source))
    assert found.state == "passed", str(found)


@pytest.mark.parametrize(("number", "source", "said"), CASES)
def test_a_plausible_mistake_is_named(number, source, said):
    found = result(number, *answer_with(number, source))
    assert found.state == "not yet", str(found)
    assert said in str(found)
    assert f"%solution {number} shows ours." in str(found)


@pytest.mark.parametrize("part", ["a part that is not there", "local_rank"])
def test_a_part_that_does_not_stand_once_in_the_solution_is_refused(part):
    with pytest.raises(ValueError, match=r"stands \d+ times in the answer to 00\.1"):
        changed("00.1", part, "")


@pytest.mark.parametrize("number", MUTANTS)
def test_there_are_enough_mistakes(number):
    assert len(MUTANTS[number]) >= 5


@pytest.mark.parametrize("number", ["00.1", "02.2", "03.2", "04.2", "06.1"])
def test_an_answer_that_does_not_run_is_not_yet_right_with_its_line(number):
    answer_with(number, "import torch\nraise ValueError('typo')\n")
    assert f"workers/{find(number).file}, line 2" in str(result(number))


@pytest.mark.parametrize("number", ["00.1", "02.2", "03.2", "04.2", "06.1"])
def test_an_answer_that_ends_the_script_is_not_yet_right(number):
    answer_with(number, find(number).solution + "\nexit()\n")
    found = result(number)
    assert found.state == "not yet", str(found)
    assert "Is there an exit() in it?" in str(found)


def test_every_exercise_of_the_course_is_tested():
    assert {each.number for name in notebooks() for each in exercises_of(name)} == set(MUTANTS)


@pytest.mark.parametrize("number", ["99.9", "07.9", "x", "", "07", "../../x"])
def test_an_exercise_that_is_not_there(number):
    with pytest.raises(InputError, match="there is no exercise"):
        say(number)


def test_a_number_without_quotes_is_told_to_be_in_quotes():
    with pytest.raises(InputError, match="exercise in quotes"):
        say(4.1)
