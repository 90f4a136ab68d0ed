"""After a test, no answer is left in `workers/`."""

import pytest

from course_utils import paths


@pytest.fixture(autouse=True)
def no_answers_left():
    yield
    for path in paths.workers().glob("exercise_*.py"):
        path.unlink()
