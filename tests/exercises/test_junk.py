"""Answers that make no sense: each exercise says *not yet*, and its check never breaks itself."""

import ast

import pytest

from course_utils.checking.check import result
from tests.exercises.test_exercises import MUTANTS, answer_with, no_answers_left, stub

__all__ = ["no_answers_left"]  # the fixture holds here too
JUNK = ["None", "'words'", "[float('nan'), [1.0, 'x']]", "__import__('torch').full((3,), 1e30)"]
INTERNAL = ("probes/", "course_utils/checking", "exercises/nb", "Traceback")


def returning(number: str, junk: str) -> str:
    """The stub of an exercise, of which every function that is to be written returns `junk`."""
    text = stub(number)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = "\n".join(map(ast.unparse, node.body))
            if "raise NotImplementedError" in body:
                node.body = ast.parse(f"return {junk}").body
    return ast.unparse(tree)


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("number", MUTANTS)
def test_junk_is_not_yet_right_in_one_clear_case(number, junk):
    source = returning(number, junk)
    if "raise NotImplementedError" not in stub(number):
        pytest.skip("this exercise asks to find a mistake: its stub runs")
    found = result(number, *answer_with(number, source))
    assert found.state == "not yet", str(found)
    assert len(found.lines) > 1, "no hint, not even where the solution is"
    said = str(found)
    assert not any(words in said for words in INTERNAL), said
