"""Answers that make no sense: each exercise says *not yet*, and its check never breaks itself."""

import ast

import pytest

from tests.lessons.answers import EXERCISES, checked, returning, stub

RAISES = """type("Raises", (), {
    "__getattr__": lambda self, name: 1 / 0,
    "__iter__": lambda self: 1 / 0,
    "tolist": lambda self: 1 / 0,
})()"""
JUNK = (
    "None",
    "'words'",
    "[float('nan'), [1.0, 'x']]",
    "__import__('torch').full((3,), 1e30)",
    "10**5000",
    RAISES,
)
WRONG_FORMS = ("lambda answer: [answer]", "repr", "lambda answer: print")
INTERNAL = ("course_utils/", "lessons/", "on_ranks", "Traceback")


def all_returning(source: str, junk: str) -> str:
    """A stub of which every function that is to be written returns `junk`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = "\n".join(map(ast.unparse, node.body))
            if "raise NotImplementedError" in body:
                node.body = ast.parse(f"return {junk}").body
    return ast.unparse(tree)


def is_not_yet_right_in_clear_words(number: str, source: str) -> None:
    found = checked(number, source)
    said = str(found)
    assert found.state == "not yet", said
    assert len(found.lines) > 1, "no hint, not even where the solution is"
    assert not any(words in said for words in INTERNAL), said


def returns_nothing(source: str) -> bool:
    """Whether every function that the check calls is one that returns None."""
    found = [each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)]
    own = [each for each in found if each.name.startswith("right_")]
    return all(each.returns and ast.unparse(each.returns) == "None" for each in own)


@pytest.mark.parametrize("number", EXERCISES)
def test_junk_is_not_yet_right_in_one_clear_case(number):
    source = stub(EXERCISES[number])
    if "raise NotImplementedError" not in source:
        pytest.skip("this exercise asks to find a mistake: its stub runs")
    junk = JUNK[list(EXERCISES).index(number) % len(JUNK)]  # one each, all of them over the course
    is_not_yet_right_in_clear_words(number, all_returning(source, junk))


@pytest.mark.parametrize("number", EXERCISES)
def test_a_right_answer_in_a_wrong_form_is_refused_in_clear_words(number):
    form = WRONG_FORMS[list(EXERCISES).index(number) % len(WRONG_FORMS)]
    source = returning(number, form)
    if "def right_" not in source:
        pytest.skip("the answer is a class")
    if returns_nothing(source):
        pytest.skip("the answer fills what it is given: whatever it returns is ignored")
    is_not_yet_right_in_clear_words(number, source)
