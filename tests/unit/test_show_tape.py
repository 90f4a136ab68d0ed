"""The picture of a tape."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import pytest

from course_utils import files, show
from course_utils.show.tape_graph import layout


class Entry(NamedTuple):
    inputs: list
    outputs: list
    op: str = ""


@pytest.fixture(autouse=True)
def no_window(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


@pytest.fixture
def tape():
    module = files.load_worker("tape.py")
    module.trace(False)
    module.reset_tape()
    return module


def texts():
    return [text.get_text() for text in plt.gca().texts if text.get_text()]


def test_every_variable_is_drawn_once_with_what_made_it(tape):
    a, b = tape.Variable([1.0], name="a"), tape.Variable([2.0], name="b")
    (a * b + b).tanh().sum()
    show.tape(tape.gradient_tape, title="a tape")
    assert sorted(texts()) == ["a", "b", "v0\na × b", "v1\nv0 + b", "v2\ntanh(v1)", "v3\nsum(v2)"]  # noqa: RUF001
    assert plt.gca().get_title(loc="left") == "a tape"


def test_the_backward_pass_is_drawn_below_the_forward_pass(tape):
    a = tape.Variable([1.0], name="a")
    L = (a * a).sum()
    forward = len(tape.gradient_tape)
    tape.grad(L, [a])
    show.tape(tape.gradient_tape, title="", forward=forward)
    height = {text.get_text().split("\n")[0]: text.get_position()[1] for text in plt.gca().texts}
    names = {
        name for entry in tape.gradient_tape[:forward] for name in entry.inputs + entry.outputs
    }
    assert min(height[name] for name in names) > max(
        y for name, y in height.items() if name and name not in names
    )


def test_no_two_boxes_share_a_place_and_results_are_right_of_their_inputs():
    entries = [Entry(["a", "b"], ["c"]), Entry(["c", "d"], ["e"]), Entry(["a", "e"], ["f"])]
    places = layout(entries)
    assert len(set(places.values())) == len(places) == 6
    for entry in entries:
        assert all(places[name][0] < places[entry.outputs[0]][0] for name in entry.inputs)


def test_an_empty_tape_is_answered_clearly():
    with pytest.raises(ValueError, match="the tape is empty"):
        show.tape([], title="")
