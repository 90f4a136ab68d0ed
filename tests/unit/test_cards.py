"""What stands on the cards of a page, from what was known of a run or an answer."""

import pytest

from course_utils import paths
from course_utils.checking.check import Result
from course_utils.exercises import find
from nbtorchrun.display import stacks

DUMP = """Thread 0x1 (most recent call first):
  File "/python/threading.py", line 5 in wait

Current thread 0x2 (most recent call first):
  File "/site/torch/distributed/distributed_c10d.py", line 30 in barrier
  File "/site/torch/distributed/c10d_logger.py", line 20 in wrapper
  File "{workers}/helper.py", line 3 in wait_for_all
  File "{workers}/train.py", line 12 in <module>
  File "/course/nbtorchrun/worker/bootstrap.py", line 7 in main

"""


def test_a_stack_begins_with_the_student_s_own_calls():
    said = stacks.shown(DUMP.format(workers=paths.workers()))
    assert said.splitlines() == [
        "  workers/helper.py, line 3, in wait_for_all",
        "  workers/train.py, line 12, in <module>",
        "in which it had called",
        "  distributed/distributed_c10d.py, line 30, in barrier",
        "  distributed/c10d_logger.py, line 20, in wrapper",
    ]


def test_a_stack_without_the_student_s_calls_is_left_as_it_is():
    assert stacks.shown(DUMP) == DUMP.strip()


@pytest.mark.parametrize(
    ("number", "following"), [("04.1", "Next: 04.2 "), ("00.2", "Next: 00.3 ")]
)
def test_a_passed_exercise_names_the_next_one(number, following):
    assert following in Result(find(number), "passed", ["right"]).card()
    assert "Next:" not in Result(find(number), "not yet", ["wrong"]).card()


def test_the_last_exercise_of_a_notebook_names_none():
    assert "Next:" not in Result(find("16.1"), "passed", []).card()
