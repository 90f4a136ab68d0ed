"""Right answers in another form: they pass, or one sentence says which form is asked for."""

import ast

import pytest

from course_utils.checking.check import result
from course_utils.checking.registry import find
from tests.exercises.test_exercises import MUTANTS, answer_with, no_answers_left, stub
from tests.exercises.test_junk import INTERNAL

__all__ = ["no_answers_left"]  # the fixture holds here too
LEAVES = """
import numpy, torch

def _leaves(value, form):
    if isinstance(value, (list, tuple)):
        return type(value)(_leaves(each, form) for each in value)
    return form(value) if type(value) in (int, float) else value
"""
NUMPY = "lambda n: numpy.int64(n) if isinstance(n, int) else numpy.float64(n)"
FLOAT32 = "lambda n: torch.tensor(n, dtype=torch.float32 if isinstance(n, float) else torch.int64)"
NUMBERS = ("00.1", "00.3", "04.4", "05.1", "05.4", "07.2", "07.4", "08.1", "09.1", "12.1")
NUMBERS += ("12.3", "13.3", "14.3", "03.2", "10.4", "11.2", "13.2", "14.1")
SINGLE = ("04.4", "07.4", "09.1", "13.3", "14.3")  # a number with six right digits is right
NAMES = ("03.1", "04.1", "04.3")  # fill what they are given: whatever they return is ignored


def written(number: str) -> list[str]:
    """The functions that an answer consists of."""
    text = stub(number)
    ours = [each.name for each in ast.parse(find(number).solution).body if is_function(each)]
    if not find(number).file or "raise NotImplementedError" not in text:
        return ours[-1:]  # a function, which may have another name; or a file with mistakes
    open_ = (each for each in ast.parse(text).body if is_function(each))
    return [each.name for each in open_ if "raise NotImplementedError" in ast.unparse(each)]


def is_function(node: ast.stmt) -> bool:
    """Whether a statement defines a function."""
    return isinstance(node, ast.FunctionDef)


def formed(number: str, form: str) -> str:
    """Our answer, of which every function gives `form` of its result."""
    names, tree = written(number), ast.parse(find(number).solution)
    for each in filter(is_function, tree.body):
        each.name = f"_right_{each.name}" if each.name in names else each.name
    source = ast.unparse(tree) + LEAVES
    for name in names:
        source += f"\ndef {name}(*given, **named):\n"
        source += f"    return ({form})(_right_{name}(*given, **named))\n"
    return source


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_numpy_are_numbers(number):
    source = formed(number, f"lambda answer: _leaves(answer, {NUMPY})")
    found = result(number, *answer_with(number, source))
    assert found.state == "passed", str(found)


@pytest.mark.parametrize("number", SINGLE)
def test_numbers_of_single_precision_are_numbers(number):
    source = formed(number, f"lambda answer: _leaves(answer, {FLOAT32})")
    found = result(number, *answer_with(number, source))
    assert found.state == "passed", str(found)


@pytest.mark.parametrize(
    ("number", "form"),
    [
        ("11.1", "lambda pair: __import__('collections').namedtuple('Piece', 'out lse')(*pair)"),
        ("09.2", "lambda acts: [a._replace(microbatch=numpy.int64(a.microbatch)) for a in acts]"),
        ("12.2", "lambda late: [list(row) for row in late]"),
        ("12.2", "torch.from_numpy"),
    ],
)
def test_the_same_in_another_container_passes(number, form):
    found = result(number, *answer_with(number, formed(number, form)))
    assert found.state == "passed", str(found)


@pytest.mark.parametrize("form", ["lambda answer: [answer]", "str", "lambda answer: print"])
@pytest.mark.parametrize("number", sorted(set(MUTANTS) - set(NAMES)))
def test_a_right_answer_in_a_wrong_form_is_refused_in_clear_words(number, form):
    source = formed(number, form)
    if "_right_" not in source:
        pytest.skip("the answer is a class")
    found = result(number, *answer_with(number, source))
    assert found.state == "not yet", str(found)
    said = str(found)
    assert not any(words in said for words in INTERNAL), said


@pytest.mark.parametrize(
    ("number", "form", "said"),
    [
        ("13.3", "lambda answer: [answer]", "the form that was asked for: a number alone"),
        ("05.4", "torch.tensor", "the form that was asked for: a float"),
        ("07.1", "lambda answer: answer.tolist()", "Attention asks of every pair"),
        ("10.3", "lambda answer: answer[None]", "the form that was asked for: shape (3,)"),
        ("10.3", "lambda answer: answer.tolist()", "the form that was asked for: a Tensor"),
        ("00.2", "lambda answer: [each.tolist() for each in answer]", "expected tensors"),
    ],
)
def test_the_sentence_names_the_form(number, form, said):
    found = result(number, *answer_with(number, formed(number, form)))
    assert found.state == "not yet", str(found)
    assert said in str(found)


SPECIAL = {  # forms of a tensor whose numbers `tolist` does not give
    "a Tensor on the meta device": "lambda answer: answer.to('meta')",
    "a sparse_coo Tensor": "lambda answer: answer.to_sparse()",
    "a nested Tensor": "lambda answer: torch.nested.nested_tensor([answer])",
    "a complex Tensor": "lambda answer: answer.to(torch.complex64)",
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("number", ["02.3", "06.4", "07.1", "10.3"])
def test_a_special_tensor_is_called_by_its_name(number, kind):
    found = result(number, *answer_with(number, formed(number, SPECIAL[kind])))
    assert found.state == "not yet", str(found)
    assert f"returned {kind}" in str(found)


@pytest.mark.parametrize("form", ["x.to('meta')", "x.to_sparse()", "x.numpy()", "None"])
def test_a_special_tensor_in_a_variable_is_called_by_its_name(form):
    source = find("01.2").solution + "\n_right = sigmoid\n"
    source += f"def sigmoid(x):\n    r = _right(x)\n    x = r.value\n    r.value = {form}\n"
    found = result("01.2", *answer_with("01.2", source + "    return r\n"))
    assert found.state == "not yet", str(found)
    assert "sigmoid([-2, 0, 1.5]): the value" in str(found)


@pytest.mark.parametrize("form", ["torch.tensor(place, device='meta')", "complex(place)"])
def test_places_that_are_no_numbers_are_refused(form):
    form = f"lambda buckets: [[{form} for place in bucket] for bucket in buckets]"
    found = result("03.2", *answer_with("03.2", formed("03.2", form)))
    assert "Return a list of lists of places" in str(found)


@pytest.mark.parametrize("number", ["01.3", "04.2", "06.4", "10.3"])
def test_lost_digits_are_named_as_such(number):
    source = formed(number, "lambda answer: answer.half().to(answer.dtype)")
    assert "the last digits are gone" in str(result(number, *answer_with(number, source)))


@pytest.mark.parametrize(
    ("number", "form"),
    [
        ("11.2", "lambda pairs: [[each + 0.4 for each in pair] for pair in pairs]"),
        ("11.2", "lambda pairs: [[float('inf'), 0.0] for pair in pairs]"),
        ("13.2", "lambda reads: [[str(each) for each in read] for read in reads]"),
        ("14.1", "lambda groups: [[each + 0.4 for each in group] for group in groups]"),
        ("14.1", "lambda groups: [[float('inf') for each in group] for group in groups]"),
        ("10.4", "lambda buckets: [[float(each) for each in bucket] for bucket in buckets]"),
        ("10.4", "numpy.array"),
    ],
)
def test_what_is_no_whole_number_is_refused(number, form):
    found = result(number, *answer_with(number, formed(number, form)))
    assert found.state == "not yet", str(found)
    assert not any(words in str(found) for words in INTERNAL), str(found)


@pytest.mark.parametrize(
    ("number", "form", "said"),
    [
        ("02.1", "lambda whole: -whole if torch.is_tensor(whole) else whole", "values of a row"),
        ("02.1", "lambda whole: whole.flip(0) if torch.is_tensor(whole) else whole", "which order"),
        ("05.4", "lambda norm: float('inf')", "Square, add up on each rank"),
        ("05.5", "lambda shard: shard / 0", "Which number do you divide by"),
        ("06.4", "lambda rows: rows.long()", "That is an int64. Which of your lines changes"),
        ("09.2", "lambda acts: [a._replace(kind='f') for a in acts]", 'The kind is "F" for a'),
        ("12.3", "lambda flops: torch.tensor(flops).to('meta')", "a Tensor on the meta device"),
        ("13.3", "lambda share: None", "end without a `return`"),
        ("14.3", "str", "Return a number"),
        ("08.3", "lambda each: [100 * one for one in each]", "Those are percentages"),
        ("13.1", "lambda wish: True", "Nobody wishes to stop"),
        ("13.1", "lambda wish: None", "end without a `return`"),
        ("13.2", "lambda reads: reads[::-1]", "in the order of the pieces"),
        ("14.4", "lambda found: {name: each[None] for name, each in found.items()}", "form that"),
        ("14.4", "lambda found: {name: each.float() for name, each in found.items()}", "last dig"),
    ],
)
def test_a_hint_is_true_of_the_answer(number, form, said):
    source = formed(number, form)
    found = result(number, *answer_with(number, source))
    assert found.state == "not yet", str(found)
    assert said in str(found)


def test_an_output_that_only_nccl_would_fill_is_called_so():
    flat = "every = mine.new_empty(world * rows, *mine.shape[1:])"
    source = find("08.2").solution.replace(flat, "every = mine.new_empty(world, *padded.shape)")
    found = result("08.2", *answer_with("08.2", source))
    assert "gloo fills one dimension: an output of N * n rows" in str(found)


def test_a_function_that_exits_is_not_yet_right():
    found = result("13.3", *answer_with("13.3", formed("13.3", "exit")))
    assert "ended with an exit" in str(found)
